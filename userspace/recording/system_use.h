// SPDX-License-Identifier: Apache-2.0
// SystemUse: what a node uses outside of its pods, and what is reserved for it. It is recorded for
// `headroomctl advise reserves`; no decision depends on it.
#pragma once

#include "recording/wire.h"

#include <headroom/bpf/abi.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::recording {

enum class SystemRole : std::uint8_t {
  kNode,   // the root: all of the node
  kPods,   // the cgroup of all pods
  kKube,   // the kubelet or a container runtime, or kubeReservedCgroup
  kOther,  // another child of the root
};

struct SystemCgroup {
  CgroupId id;
  std::string path;  // "/system.slice/kubelet.service"; "/": the root
  SystemRole role = SystemRole::kOther;
  hr_record record{};
};

// As configured; absent: not reserved.
struct ReservedAmounts {
  std::optional<std::int64_t> milli_cpu;
  std::optional<std::int64_t> memory, ephemeral_storage;  // bytes
  std::optional<std::int64_t> pids;
  friend bool operator==(const ReservedAmounts&, const ReservedAmounts&) = default;
};

struct NodeReserves {
  ReservedAmounts kube, system;  // kubeReserved, systemReserved
  friend bool operator==(const NodeReserves&, const NodeReserves&) = default;
};

// The cgroups of one sweep: the root, its children, and those of the kubelet and of container
// runtimes, wherever they are. The node's capacity and what is available are in the turn before it.
struct SystemUse {
  Instant at;
  // Snapshot::unaccounted_memory, in bytes: what memory.available does not count as used.
  std::optional<std::int64_t> unaccounted_memory;
  NodeReserves reserves;
  std::vector<SystemCgroup> cgroups;
};

// Written as what changed since the one before.
class SystemUseDelta {
 public:
  void forget() { *this = {}; }
  void write(Writer& io, const SystemUse& use);
  void read(Reader& io, SystemUse& use);

 private:
  struct State {
    SystemCgroup cgroup;
    std::uint64_t pass = 0;  // the last it was seen in
  };
  void erase_missing();

  std::unordered_map<CgroupId, State> states_;
  std::optional<NodeReserves> reserves_;
  std::uint64_t pass_ = 0;
};

}  // namespace headroom::recording
