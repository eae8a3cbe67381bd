// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/findings.h"

#include "base/human_readable.h"
#include "config/kubelet_keys.h"
#include "ctl/check/memory_findings.h"

#include <headroom/cgroup_record.h>

#include <algorithm>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl::check {
namespace {

using Findings = std::vector<Finding>;

constexpr std::string_view kNoDaemon = "headroomd is not running";

Finding unknown_finding(std::string_view subject, const Error& why) {
  return {subject, State::kUnknown, why.what, "", ""};
}

Finding check_cgroup_v2(const HostFacts& facts) {
  const observe::CgroupRoot& root = facts.cgroups;
  if (!root.unsupported_reason.empty())
    return {"cgroup v2", State::kMissing, root.unsupported_reason, "headroomd refuses to start",
            facts.system.use_cgroup_v2(root.unified)};
  return {"cgroup v2", State::kOk, "unified, at " + root.mount.string(), "", ""};
}

// check_cgroup_v2() reports missing controllers memory, cpu and pids.
Finding check_controllers(const HostFacts& facts) {
  std::string lacking, cost;
  for (const auto& [controller, serves] :
       {std::pair{"io", "bytes and operations of disks are unknown"},
        std::pair{"cpuset", "pods cannot have exclusive CPUs"}})
    if (!facts.cgroups.has(controller)) {
      lacking += std::string(lacking.empty() ? "" : ", ") + controller;
      cost += std::string(cost.empty() ? "" : "; ") + serves;
    }
  const std::string list = fmt::format("{}", fmt::join(facts.cgroups.controllers, " "));
  if (lacking.empty()) return {"controllers", State::kOk, list, "", ""};
  return {
      "controllers", State::kLimited, "no " + lacking + " among: " + list, cost,
      facts.system.remove_kernel_argument("cgroup_disable=") + ", or use a kernel that has them"};
}

Finding check_cgroup_kill(const HostFacts& facts) {
  if (!facts.cgroup_kill) return unknown_finding("cgroup.kill", facts.cgroup_kill.error());
  if (*facts.cgroup_kill) return {"cgroup.kill", State::kOk, "present", "", ""};
  return {"cgroup.kill", State::kMissing, "missing", "no pod can be killed as a whole",
          facts.system.upgrade_kernel("5.14")};
}

Finding check_psi(const HostFacts& facts) {
  if (facts.pressure) return {"pressure (PSI)", State::kOk, "on", "", ""};
  return {"pressure (PSI)", State::kLimited, "off",
          "how long tasks waited for CPU, memory and disks is unknown; evictions do not need it",
          facts.system.add_kernel_arguments("psi=1")};
}

Finding check_btf(const HostFacts& facts) {
  if (facts.btf) return {"BTF", State::kOk, "present", "", ""};
  return {"BTF", State::kLimited, "no /sys/kernel/btf/vmlinux",
          "no BPF: cgroups are read from files, at tens of times the CPU time; waits for memory "
          "and their causes are unknown",
          "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are"};
}

std::string groups_from(const SweepFacts& readings, std::string_view source) {
  std::vector<std::string_view> groups;
  for (std::size_t i = 0; i < HR_GROUPS; ++i)
    if (readings.sources[i] == source) groups.push_back(kGroupNames[i]);
  return fmt::format("{}", fmt::join(groups, " "));
}

Finding check_bpf_sweep(const HostFacts& facts) {
  if (!facts.readings) return unknown_finding("BPF sweep", facts.readings.error());
  const SweepFacts& readings = *facts.readings;
  const std::string why = fmt::format("{}", fmt::join(readings.source_notes, "; "));
  if (!readings.bpf)
    return {"BPF sweep", State::kLimited, "not working: " + why,
            fmt::format("{} cgroups are read from files: the same decisions, at tens of times the "
                        "CPU time",
                        readings.cgroups),
            facts.system.upgrade_kernel("6.1") +
                "; it needs BTF, and headroomd needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN"};
  const std::string files = groups_from(readings, "files");
  if (files.empty())
    return {"BPF sweep", State::kOk,
            fmt::format("serves every group of {} cgroups ({})", readings.cgroups, why), "", ""};
  return {"BPF sweep", State::kLimited,
          fmt::format("serves {}; files serve {}", groups_from(readings, "bpf"), files),
          "each cgroup is read from files as well: " + why,
          "report the disagreement, with this kernel's version"};
}

std::string_view effect_of_missing(std::string_view program) {
  if (program == "stall") return "waits for memory and their causes are unknown";
  if (program == "throttle") return "the duration of waits for CPU quota is unknown";
  return "new and removed cgroups are noticed at the next sweep, up to a second later";
}

Finding check_bpf_program(const ProgramFacts& program, std::string_view subject,
                          const OperatingSystem& system) {
  const std::string skipped_programs = fmt::format("{}", fmt::join(program.skipped_programs, "; "));
  if (!program.loaded)
    return {subject, State::kLimited, program.loaded.error().what,
            std::string(effect_of_missing(program.name)),
            system.upgrade_kernel("6.1") + "; it needs BTF and CONFIG_FUNCTION_TRACER=y"};
  if (!skipped_programs.empty())
    return {subject, State::kLimited, "in part: " + skipped_programs,
            "in part: " + std::string(effect_of_missing(program.name)),
            "use a kernel that has these hooks"};
  return {subject, State::kOk, "loads", "", ""};
}

std::string_view program_subject(const ProgramFacts& program) {
  if (program.name == "stall") return "BPF stall";
  if (program.name == "throttle") return "BPF throttle";
  return "BPF lifecycle";
}

std::string kfunc_names(std::uint32_t kfuncs) {
  std::string names;
  for (const auto& [bit, name] :
       {std::pair{HR_KFUNC_RDONLY_CAST, "rdonly_cast"},
        std::pair{HR_KFUNC_CGROUP_FLUSH, "cgroup_rstat_flush"},
        std::pair{HR_KFUNC_CSS_FLUSH, "css_rstat_flush"}, std::pair{HR_KFUNC_MEMCG, "mem_cgroup"},
        std::pair{HR_KFUNC_CSS_ITER, "iter_css"}})
    if (kfuncs & bit) names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

// No kfunc is essential: kernel releases have different kfuncs, and the sweep adapts to them.
Finding check_kfuncs(const HostFacts& facts) {
  if (!facts.kfuncs) return unknown_finding("kfuncs", facts.kfuncs.error());
  const std::string names = kfunc_names(*facts.kfuncs);
  return {"kfuncs", State::kOk, names.empty() ? "none on this kernel" : names, "", ""};
}

Finding check_kallsyms(const HostFacts& facts) {
  if (!facts.symbols) return unknown_finding("kallsyms", facts.symbols.error());
  if (*facts.symbols) return {"kallsyms", State::kOk, "readable", "", ""};
  return {"kallsyms", State::kLimited, "addresses are hidden",
          "from 6.11 to 6.19 part of memory.stat is read from files",
          "set kernel.kptr_restrict to 1 or less, and leave headroomd CAP_SYSLOG"};
}

Finding check_clock(const HostFacts& facts) {
  const bool slow = facts.clock_source == "hpet" || facts.clock_source == "acpi_pm";
  const std::string source = facts.clock_source.empty() ? "unknown" : facts.clock_source;
  if (slow)
    return {
        "clock", State::kLimited, source + ": read through the bus",
        "each read of the clock takes a microsecond or more, and the BPF programs read it often",
        "find out why the kernel distrusts the TSC (dmesg | grep -i tsc)"};
  if (!facts.clock_synchronised)
    return {"clock", State::kLimited, source + ", not synchronised",
            "times in records may be wrong; intervals are still right",
            "run systemd-timesyncd, or " + facts.system.install("chrony")};
  return {"clock", State::kOk, source + ", synchronised", "", ""};
}

Finding check_systemd(const HostFacts& facts) {
  if (facts.systemd) return {"systemd", State::kOk, *facts.systemd + ", on the bus", "", ""};
  return {"systemd", State::kLimited, facts.systemd.error().what,
          "headroomctl cannot reach headroomd, and slices cannot be managed",
          "run systemd as PID 1 and a system bus: " + facts.system.install("dbus")};
}

Finding check_configuration(const HostFacts& facts) {
  const auto& warnings = facts.configuration_warnings;
  if (facts.configuration.empty() && !warnings.empty())
    return {
        "configuration", State::kOk,
        fmt::format("valid; {}{}", warnings.front(),
                    warnings.size() > 1 ? fmt::format(" (and {} more)", warnings.size() - 1) : ""),
        "", ""};
  if (facts.configuration.empty()) return {"configuration", State::kOk, "valid", "", ""};
  return {"configuration", State::kMissing,
          fmt::format("{}{}", facts.configuration.front(),
                      facts.configuration.size() > 1
                          ? fmt::format(" (and {} more)", facts.configuration.size() - 1)
                          : ""),
          "headroomd refuses to start, or keeps the old configuration", "headroomd --check-config"};
}

Finding check_daemon(const HostFacts& facts) {
  if (!facts.daemon) return unknown_finding("headroomd", facts.daemon.error());
  if (*facts.daemon)
    return {"headroomd", State::kOk, "running, mode " + (*facts.daemon)->mode, "", ""};
  return {"headroomd", State::kLimited, "not running", "headroomd does not guard this node",
          "systemctl enable --now headroomd"};
}

// headroomd keeps four descriptors open for each pod whose kill files it holds, and one for each
// known cgroup.
Finding check_descriptors(const HostFacts& facts) {
  const auto* daemon = facts.daemon && *facts.daemon ? &**facts.daemon : nullptr;
  const std::uint64_t most = daemon ? daemon->descriptors : facts.descriptors;
  const std::size_t cgroups = facts.readings ? facts.readings->cgroups : 0;
  const std::uint64_t needed = 1024 + 3 * cgroups;
  const std::string found = fmt::format("{} for {}", most, daemon ? "headroomd" : "this shell");
  if (most >= needed) return {"descriptors", State::kOk, found, "", ""};
  return {"descriptors", State::kLimited, found,
          fmt::format(
              "{} are enough for {} cgroups; beyond that, files are opened each time, or not read",
              needed, cgroups),
          "set LimitNOFILE=65536 in headroomd.service"};
}

Finding check_memory_lock(const DaemonFacts* daemon) {
  if (!daemon) return unknown_finding("memory lock", {std::string(kNoDaemon)});
  if (daemon->locked_bytes > 0) return {"memory lock", State::kOk, "held", "", ""};
  return {"memory lock", State::kLimited, "not held",
          "under memory pressure headroomd may be paged out when it is needed",
          "set LimitMEMLOCK=infinity in headroomd.service; in a container, add CAP_IPC_LOCK"};
}

Finding check_oom_score_adj(const DaemonFacts* daemon) {
  if (!daemon) return unknown_finding("OOM score", {std::string(kNoDaemon)});
  const std::string found = std::to_string(daemon->oom_score_adj);
  if (daemon->oom_score_adj <= -999) return {"OOM score", State::kOk, found, "", ""};
  return {"OOM score", State::kLimited, found, "the kernel's OOM killer may choose headroomd",
          "set OOMScoreAdjust=-999 in headroomd.service"};
}

bool is_running(const HostFacts& facts, std::string_view program) {
  return facts.conflicting_daemons &&
         std::find(facts.conflicting_daemons->begin(), facts.conflicting_daemons->end(), program) !=
             facts.conflicting_daemons->end();
}

Finding check_conflicting_daemons(const HostFacts& facts) {
  if (!facts.conflicting_daemons)
    return unknown_finding("other programs that kill", facts.conflicting_daemons.error());
  if (facts.conflicting_daemons->empty())
    return {"other programs that kill", State::kOk, "none", "", ""};
  const bool kubelet = is_running(facts, "kubelet");
  const bool others = facts.conflicting_daemons->size() > (kubelet ? 1u : 0u);
  std::string remedy = others ? "stop and mask them (systemctl mask --now)" : "";
  if (kubelet)
    remedy += std::string(remedy.empty() ? "" : "; ") +
              "keep the kubelet, with evictionHard values that are reached after headroom's";
  return {"other programs that kill", State::kLimited,
          fmt::format("{} running", fmt::join(*facts.conflicting_daemons, ", ")),
          "two programs that act on the same shortage kill twice, each by its own rules", remedy};
}

// A kubelet also writes slices and CPU sets.
Finding check_limit_writers(const HostFacts& facts) {
  constexpr std::string_view kSubject = "other programs that set limits";
  if (!facts.conflicting_daemons)
    return unknown_finding(kSubject, facts.conflicting_daemons.error());
  const bool kubelet = is_running(facts, "kubelet") || is_running(facts, "k3s-server");
  if (!kubelet || facts.enforced.empty()) return {kSubject, State::kOk, "none", "", ""};
  return {
      kSubject, State::kLimited,
      fmt::format("a kubelet is running, and {} enforced", fmt::join(facts.enforced, ", ")),
      "two programs that manage the same cgroups overwrite each other's values repeatedly",
      "set mode: observe for headroom, or cgroupsPerQOS: false and cpuManagerPolicy: none for the "
      "kubelet"};
}

bool has_kubelet(const HostFacts& facts) {
  return facts.kubelet || (facts.conflicting_daemons &&
                           (is_running(facts, "kubelet") || is_running(facts, "k3s-server")));
}

// Keys of the kubelet's file that concern the node's resources and have no effect in headroomd.
Finding check_ignored_keys(const HostFacts& facts) {
  constexpr std::string_view kSubject = "kubelet's keys";
  if (facts.ignored_keys.empty()) return {kSubject, State::kOk, "all used", "", ""};
  const std::string keys = fmt::format("{}", fmt::join(facts.ignored_keys, ", "));
  if (has_kubelet(facts)) return {kSubject, State::kOk, "left to the kubelet: " + keys, "", ""};
  std::string cost;
  for (const config::IgnoredKubeletKey& ignored : config::ignored_kubelet_keys()) {
    const auto& set = facts.ignored_keys;
    if (std::find(set.begin(), set.end(), ignored.key) == set.end()) continue;
    if (cost.find(ignored.consequence) != std::string::npos) continue;
    cost.append(cost.empty() ? "" : "; ").append(ignored.consequence);
  }
  return {kSubject, State::kLimited, "ignored: " + keys, cost,
          "remove them, or use what headroom.yaml(5) names instead"};
}

Finding check_kubelet_source(const KubeletSource& kubelet) {
  constexpr std::string_view kSubject = "kubelet's pods";
  constexpr std::string_view kCost =
      "unknown pods are ranked by their cgroups alone, without priorities and names";
  if (!kubelet.loaded)
    return {kSubject, State::kLimited, "headroom-kube has reported none", std::string(kCost),
            "systemctl enable --now headroom-kube"};
  if (!kubelet.last_poll_ok)
    return {kSubject, State::kLimited, kubelet.error, std::string(kCost),
            "see headroom.kubernetes.kubelet in headroom.yaml(5)"};
  return {kSubject, State::kOk, fmt::format("{} from {}", kubelet.pods, kubelet.url), "", ""};
}

// A kubelet writes oom_score_adj only when it starts a container.
Finding check_oom_score_mirroring(const HostFacts& facts) {
  constexpr std::string_view kSubject = "oom_score_adj";
  if (!facts.mirrors_scores) return {kSubject, State::kOk, "left alone", "", ""};
  if (!facts.conflicting_daemons)
    return unknown_finding(kSubject, facts.conflicting_daemons.error());
  const bool kubelet = is_running(facts, "kubelet") || is_running(facts, "k3s-server");
  if (!kubelet) return {kSubject, State::kOk, "mirrors the ranking", "", ""};
  return {kSubject, State::kLimited, "a kubelet is running, and headroom.oomScoreAdj is mirror",
          "the kubelet sets a container's value at its start only: that value is overwritten",
          "headroom.oomScoreAdj: leave"};
}

Finding check_project_quota(const HostFacts& facts) {
  if (!facts.project_quota) return unknown_finding("project quota", facts.project_quota.error());
  if (*facts.project_quota) return {"project quota", State::kOk, "on, at " + facts.nodefs, "", ""};
  return {"project quota", State::kLimited, "off, at " + facts.nodefs,
          "pods' disk usage is found by walking their files, at a bounded pace",
          "mount it with prjquota (ext4 needs the project feature, tune2fs -O project)"};
}

Finding check_privilege(const HostFacts& facts) {
  if (facts.root) return {"privilege", State::kOk, "root", "", ""};
  return {"privilege", State::kUnknown, "not root: BPF was not tried", "", "run this as root"};
}

}  // namespace

std::string_view name(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kLimited:
      return "limited";
    case State::kMissing:
      return "missing";
    case State::kUnknown:
      return "unknown";
  }
  return "";
}

std::vector<Finding> findings(const HostFacts& facts) {
  Findings all{check_privilege(facts),   check_cgroup_v2(facts), check_controllers(facts),
               check_cgroup_kill(facts), check_psi(facts),       check_btf(facts),
               check_kallsyms(facts),    check_kfuncs(facts),    check_bpf_sweep(facts)};
  if (!facts.programs) all.push_back(unknown_finding("BPF programs", facts.programs.error()));
  for (const ProgramFacts& program : facts.programs.value_or(std::vector<ProgramFacts>{}))
    all.push_back(check_bpf_program(program, program_subject(program), facts.system));
  const DaemonFacts* daemon = facts.daemon && *facts.daemon ? &**facts.daemon : nullptr;
  for (Finding finding : {check_clock(facts), check_systemd(facts), check_configuration(facts),
                          check_daemon(facts), check_descriptors(facts), check_memory_lock(daemon),
                          check_oom_score_adj(daemon), check_conflicting_daemons(facts),
                          check_limit_writers(facts), check_oom_score_mirroring(facts)})
    all.push_back(std::move(finding));
  for (Finding& finding : memory_findings(facts))
    all.push_back(std::move(finding));
  all.push_back(check_project_quota(facts));
  all.push_back(check_ignored_keys(facts));
  if (facts.kubelet) all.push_back(check_kubelet_source(*facts.kubelet));
  return all;
}

bool works(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& each) { return each.state == State::kMissing; });
}

}  // namespace headroom::ctl::check
