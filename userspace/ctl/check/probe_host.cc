// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/probe_host.h"

#include "config/load/load.h"
#include "manifest/manifest_reader.h"
#include "observe/node/filesystems.h"
#include "observe/node/kubelet_process.h"
#include "observe/node/project_quota.h"
#include "report/status/kube_status.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
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

// The root cgroup has no cgroup.kill, so any child is checked.
Result<bool> has_cgroup_kill(const fs::path& mount) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(mount, error))
    if (entry.is_directory(error)) return fs::exists(entry.path() / "cgroup.kill", error);
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
  facts.swap_threshold =
      std::any_of(thresholds.begin(), thresholds.end(),
                  [](const Threshold& each) { return each.signal == Signal::kSwapAvailable; });
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

}  // namespace

HostFacts probe_host() {
  HostFacts facts;
  facts.root = ::geteuid() == 0;
  facts.kernel = kernel_release();
  facts.cgroups = observe::find_cgroup_root();
  facts.cgroup_kill = has_cgroup_kill(facts.cgroups.mount);
  facts.pressure = has_pressure();
  facts.swap = has_swap();
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

}  // namespace headroom::ctl::check
