// SPDX-License-Identifier: Apache-2.0
// HostFacts: what `headroomctl check` reads from this host. A part that could not be read holds the
// error.
#pragma once

#include "base/operating_system.h"
#include "observe/cgroup/cgroup_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl::check {

// One sweep over all cgroups, with the sources that the daemon would choose.
struct SweepFacts {
  bool bpf = false;  // the BPF sweep works
  std::array<std::string_view, HR_GROUPS> sources{};
  std::vector<std::string> source_notes;
  std::size_t cgroups = 0;
};

// A BPF program that uses hooks. The error says why it was not loaded.
struct ProgramFacts {
  std::string name;
  Result<> loaded;
  std::vector<std::string> skipped_programs;  // "program: why"
};

// The running daemon's process.
struct DaemonFacts {
  std::string mode;
  std::uint64_t descriptors = 0;
  std::uint64_t locked_bytes = 0;
  std::int64_t oom_score_adj = 0;
};

// What headroom-kube gets from the kubelet, if the configuration names a kubelet.
struct KubeletSource {
  std::string url;
  bool loaded = false;  // headroom-kube has written its status file
  bool last_poll_ok = false;
  std::string error;
  std::size_t pods = 0;
};

struct HostFacts {
  bool root = false;
  std::string kernel;
  OperatingSystem system;
  observe::CgroupRoot cgroups;
  Result<bool> cgroup_kill;
  bool pressure = false;
  bool btf = false;
  Result<bool> symbols;          // kernel addresses are shown
  Result<std::uint32_t> kfuncs;  // hr_kfunc bits
  Result<SweepFacts> readings;
  Result<std::vector<ProgramFacts>> programs;
  std::string clock_source;  // "" if the kernel does not report it
  bool clock_synchronised = false;
  std::uint64_t descriptors = 0;  // the most that this process may open
  Result<std::string> systemd;    // its version
  Result<std::optional<DaemonFacts>> daemon;
  Result<std::vector<std::string>>
      conflicting_daemons;  // other running programs that evict or kill
  std::string nodefs;
  Result<bool> project_quota;                       // on nodefs
  std::vector<std::string> configuration;           // its errors
  std::vector<std::string> configuration_warnings;  // e.g. of old keys
  std::vector<std::string> ignored_keys;            // of the kubelet, set but not implemented
  std::optional<KubeletSource> kubelet;
  std::vector<std::string> enforced;  // keys by which headroomd writes what a kubelet may write
  bool swap = false;                  // swap is on
  bool swap_aware = true;             // headroom.swapAware
  bool thrash_aware = false;          // headroom.thrashAware
  bool swap_threshold = false;        // swap.available has a threshold
  bool keeps_in_zswap = false;        // headroom.podSwap.zswapWriteback: false
  bool zswap_writeback = false;       // the kernel has memory.zswap.writeback
  bool zswap_enabled = false;
  bool kernel_threshold = true;        // kernel.memAvailable has a threshold
  std::optional<Bytes> unaccounted{};  // Snapshot::unaccounted_memory
  Bytes memory{};                      // MemTotal
  bool mirrors_scores = false;         // headroom.oomScoreAdj: mirror
};

// probe_host(): reads the facts of this host. Nothing is changed: BPF programs are loaded and
// unloaded again.

HostFacts probe_host();

// The parts of probe_host(), by source.
void probe_bpf(HostFacts& facts);
void probe_processes(HostFacts& facts);
void probe_bus(HostFacts& facts);

}  // namespace headroom::ctl::check
