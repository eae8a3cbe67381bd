// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/host_facts.h"

#include "base/bus/system_bus.h"
#include "config/load/load.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/status_document.h"
#include "manifest/manifest_cache.h"
#include "observe/best_source.h"
#include "observe/bpf/kernel_facts.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/bpf/memory_guard.h"
#include "observe/bpf/wait_watch.h"
#include "observe/node/directory_size.h"
#include "observe/node/filesystem_reader.h"
#include "observe/node/node_source.h"
#include "observe/node/systemd_units.h"
#include "report/status/status_parts.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::ctl::check {
namespace {

namespace fs = std::filesystem;

std::string first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "";
}

// The root cgroup lacks these files, so any child is checked.
Result<bool> cgroups_have(const char* file, const fs::path& mount) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(mount, error))
    if (entry.is_directory(error)) return fs::exists(entry.path() / file, error);
  return failure(error ? "list " + mount.string() + ": " + error.message()
                       : "there is no cgroup below the root");
}

// With psi=0 the file exists but cannot be opened.
bool has_pressure() {
  std::ifstream pressure("/proc/pressure/memory");
  std::string line;
  return static_cast<bool>(std::getline(pressure, line));
}

// Hidden addresses read as zero. If addresses are shown, only those of per-CPU variables may be
// zero.
Result<bool> shows_symbols() {
  std::ifstream symbols("/proc/kallsyms");
  std::string line;
  bool any = false;
  for (; std::getline(symbols, line); any = true)
    if (line.substr(0, line.find(' ')).find_first_not_of('0') != std::string::npos) return true;
  if (!any) return failure("/proc/kallsyms cannot be read");
  return false;
}

bool is_synchronised() {
  timex state{};
  return ::adjtimex(&state) != TIME_ERROR;
}

std::uint64_t max_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max;
}

KubeletSource probe_kubelet(const config::KubernetesConfig& kubernetes_config) {
  const auto all = report::kubernetes_json(kubernetes_config.status_file());
  const auto part = all.is_object() ? all.find("kubelet") : all.end();
  KubeletSource kubelet;
  kubelet.url = kubernetes_config.kubelet.url;
  if (!all.is_object() || part == all.end() || !part->is_object()) return kubelet;
  kubelet.loaded = true;
  kubelet.last_poll_ok = part->value("lastPollSucceeded", false);
  kubelet.error = part->value("error", "");
  kubelet.pods = part->value("pods", std::size_t{0});
  return kubelet;
}

bool has_swap() {
  std::ifstream swaps("/proc/swaps");
  std::string line;
  std::getline(swaps, line);  // the heading
  return static_cast<bool>(std::getline(swaps, line));
}

void probe_memory(HostFacts& facts) {
  observe::NodeSource node({});
  Observations all;
  node.read_memory(all);
  facts.unaccounted = node.unaccounted();
  facts.memory = node.memory_capacity().value_or(Bytes{});
}

void probe_configuration(HostFacts& facts) {
  config::LoadResult loaded = config::read({}, {.kubelet_runs = observe::kubelet_runs()});
  const observe::Manifests manifests = observe::read_manifests(loaded.config.pod_manifests);
  for (const config::Diagnostic& diagnostic : loaded.diagnostics)
    facts.configuration.push_back(to_string(diagnostic));
  for (const config::Diagnostic& diagnostic : manifests.diagnostics)
    facts.configuration.push_back(to_string(diagnostic));
  facts.configuration_warnings = std::move(loaded.warnings);
  facts.ignored_keys = std::move(loaded.ignored_keys);
  const auto& thresholds = loaded.config.policy.thresholds;
  facts.swap_aware = loaded.config.policy.swap_aware;
  facts.thrash_aware = loaded.config.thrash_aware;
  facts.swap_threshold =
      std::any_of(thresholds.begin(), thresholds.end(),
                  [](const Threshold& each) { return each.signal == Signal::kSwapAvailable; });
  facts.keeps_in_zswap = !loaded.config.pod_swap.zswap_writeback;
  facts.kernel_threshold =
      std::any_of(thresholds.begin(), thresholds.end(),
                  [](const Threshold& each) { return each.signal == Signal::kKernelMemAvailable; });
  facts.mirrors_scores = loaded.config.mirror_oom_scores;
  if (loaded.config.slices.mode == SlicesMode::kEnforce)
    facts.enforced.push_back("headroom.slices");
  if (loaded.config.cpus.mode == config::CpusConfig::Mode::kEnforce)
    facts.enforced.push_back("headroom.cpus");
  if (loaded.config.mirror_oom_scores) facts.enforced.push_back("headroom.oomScoreAdj");
  if (!loaded.config.kubernetes.kubelet.url.empty())
    facts.kubelet = probe_kubelet(loaded.config.kubernetes);
  const config::DiskConfig& disk = loaded.config.disk;
  facts.nodefs =
      observe::find_filesystems(
          {.nodefs = disk.nodefs, .imagefs = disk.imagefs, .containerfs = disk.containerfs})
          .nodefs;
  facts.project_quota = observe::has_project_quota(facts.nodefs);
}

struct Free {
  void operator()(char* text) const { std::free(text); }
};

Result<std::string> systemd_version() {
  const auto bus = open_system_bus("headroomctl");
  if (!bus) return tl::make_unexpected(bus.error());
  char* version = nullptr;
  if (const int r = sd_bus_get_property_string(
          bus->get(), "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
          "org.freedesktop.systemd1.Manager", "Version", nullptr, &version);
      r < 0)
    return errno_failure("ask systemd for its version", -r);
  return std::string(std::unique_ptr<char, Free>(version).get());
}

const observe::LogLine kSilent = [](std::string_view) {};

Result<SweepFacts> try_sweep(const observe::CgroupRoot& root) {
  auto source = observe::BestSource::open({.root = root.mount, .log = kSilent});
  if (!source) return tl::make_unexpected(source.error());
  auto records = (*source)->sweep();
  if (!records) return tl::make_unexpected(records.error());
  return SweepFacts{.bpf = (*source)->bpf() != nullptr,
                    .sources = (*source)->group_sources(),
                    .source_notes = (*source)->source_notes(),
                    .cgroups = records->size()};
}

template <class Watch>
ProgramFacts program(std::string name, const Result<std::unique_ptr<Watch>>& watch) {
  ProgramFacts result{std::move(name), {}, {}};
  if (!watch) {
    result.loaded = tl::make_unexpected(watch.error());
    return result;
  }
  if constexpr (requires { (*watch)->skipped_programs(); })
    for (const observe::SkippedProgram& each : (*watch)->skipped_programs())
      result.skipped_programs.push_back(each.program + ": " + each.why);
  return result;
}

namespace fs = std::filesystem;

// Names as in /proc/PID/comm: at most 15 characters.
constexpr std::array<std::string_view, 6> kConflictingDaemons{
    "systemd-oomd", "earlyoom", "oomd", "nohang", "kubelet", "k3s-server"};

std::string name_of(const fs::path& process) {
  std::ifstream comm(process / "comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

// The first number after a label at the start of a line, or the second one if `last`. UINT64_MAX
// for "unlimited", 0 if the label is missing.
std::uint64_t number_after(const fs::path& file, std::string_view label, bool last = false) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(label)) continue;
    std::istringstream words(line.substr(label.size()));
    std::uint64_t first = 0, second = 0;
    if (!(words >> first)) return UINT64_MAX;  // "unlimited"
    return last && words >> second ? second : first;
  }
  return 0;
}

void read_daemon_process(DaemonFacts& daemon, const fs::path& process) {
  daemon.descriptors = number_after(process / "limits", "Max open files", true);
  daemon.locked_bytes = number_after(process / "status", "VmLck:") * 1024;
  std::ifstream(process / "oom_score_adj") >> daemon.oom_score_adj;
}

}  // namespace

HostFacts probe_host() {
  HostFacts facts;
  facts.root = ::geteuid() == 0;
  facts.kernel = kernel_release();
  facts.system = OperatingSystem::of_host();
  facts.cgroups = observe::find_cgroup_root();
  facts.cgroup_kill = cgroups_have("cgroup.kill", facts.cgroups.mount);
  facts.pressure = has_pressure();
  facts.swap = has_swap();
  facts.zswap_writeback =
      cgroups_have("memory.zswap.writeback", facts.cgroups.mount).value_or(false);
  facts.zswap_enabled = first_line("/sys/module/zswap/parameters/enabled") == "Y";
  probe_memory(facts);
  facts.btf = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  facts.symbols = facts.root ? shows_symbols()
                             : failure("not root: only root can check what headroomd can read");
  facts.clock_source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.clock_synchronised = is_synchronised();
  facts.descriptors = max_descriptors();
  probe_configuration(facts);
  probe_bpf(facts);
  probe_bus(facts);
  probe_processes(facts);
  return facts;
}

void probe_bus(HostFacts& facts) {
  facts.systemd = systemd_version();
  if (!facts.systemd) {
    facts.daemon = tl::make_unexpected(facts.systemd.error());
    return;
  }
  const auto document = fetch_status();
  if (!document) return;  // not running
  const auto status = parse_status(*document);
  if (status)
    facts.daemon = DaemonFacts{.mode = status->mode};
  else
    facts.daemon = tl::make_unexpected(status.error());
}

void probe_bpf(HostFacts& facts) {
  if (!facts.root || !facts.cgroups.unsupported_reason.empty()) {
    const char* why = facts.root ? "not tried without cgroup v2" : "not tried: needs root";
    facts.kfuncs = failure(why);
    facts.readings = failure(why);
    facts.programs = failure(why);
    return;
  }
  facts.kfuncs = observe::kernel_facts().kfuncs;
  facts.readings = try_sweep(facts.cgroups);
  const observe::WaitOptions waits{.log = kSilent};
  facts.programs->push_back(program("stall", observe::watch_stalls(waits)));
  facts.programs->push_back(program("throttle", observe::watch_throttles(waits)));
  facts.programs->push_back(
      program("guard", observe::MemoryGuard::open({.sys = "/sys", .log = kSilent})));
  facts.programs->push_back(program("lifecycle", observe::LifecycleWatch::open({.log = kSilent})));
}

void probe_processes(HostFacts& facts) {
  if (name_of("/proc/1").empty()) {
    facts.conflicting_daemons = failure("other users' processes are hidden here (hidepid)");
    return;
  }
  std::vector<std::string> conflicting_daemons;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    if (entry.path().filename().native().find_first_not_of("0123456789") != std::string::npos)
      continue;
    const std::string name = name_of(entry.path());
    if (std::find(kConflictingDaemons.begin(), kConflictingDaemons.end(), name) !=
        kConflictingDaemons.end())
      conflicting_daemons.push_back(name);
    if (name == "headroomd" && facts.daemon && *facts.daemon)
      read_daemon_process(**facts.daemon, entry.path());
  }
  std::sort(conflicting_daemons.begin(), conflicting_daemons.end());
  conflicting_daemons.erase(std::unique(conflicting_daemons.begin(), conflicting_daemons.end()),
                            conflicting_daemons.end());
  facts.conflicting_daemons = std::move(conflicting_daemons);
}

}  // namespace headroom::ctl::check
