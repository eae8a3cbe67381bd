// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/findings.h"

#include <headroom/record.h>

#include <algorithm>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl::check {
namespace {

using Findings = std::vector<Finding>;

constexpr std::string_view kNoDaemon = "headroomd is not running";

Finding unknown(std::string_view subject, const Error& why) {
  return {subject, State::kUnknown, why.what, "", ""};
}

Finding of_hierarchy(const Facts& facts) {
  const observe::CgroupRoot& root = facts.cgroups;
  if (!root.refusal.empty())
    return {"cgroup v2", State::kMissing, root.refusal, "headroomd refuses to start",
            root.unified ? "remove cgroup_disable= from the kernel's command line"
                         : "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all"};
  return {"cgroup v2", State::kOk, "unified, at " + root.mount.string(), "", ""};
}

// What is missing of memory, cpu and pids is in the refusal above.
Finding of_controllers(const Facts& facts) {
  std::string lacking, cost;
  for (const auto& [controller, serves] :
       {std::pair{"io", "bytes and operations of disks are not known"},
        std::pair{"cpuset", "pods cannot have CPUs of their own"}})
    if (!facts.cgroups.has(controller)) {
      lacking += std::string(lacking.empty() ? "" : ", ") + controller;
      cost += std::string(cost.empty() ? "" : "; ") + serves;
    }
  const std::string list = fmt::format("{}", fmt::join(facts.cgroups.controllers, " "));
  if (lacking.empty()) return {"controllers", State::kOk, list, "", ""};
  return {"controllers", State::kLimited, "no " + lacking + " among: " + list, cost,
          "remove cgroup_disable= from the kernel's command line, or take a kernel that has them"};
}

Finding of_kill(const Facts& facts) {
  if (!facts.cgroup_kill) return unknown("cgroup.kill", facts.cgroup_kill.error());
  if (*facts.cgroup_kill) return {"cgroup.kill", State::kOk, "there", "", ""};
  return {"cgroup.kill", State::kMissing, "not there", "no pod can be killed as a whole",
          "take a kernel of 5.14 or later"};
}

Finding of_pressure(const Facts& facts) {
  if (facts.pressure) return {"pressure (PSI)", State::kOk, "on", "", ""};
  return {"pressure (PSI)", State::kLimited, "off",
          "how long tasks waited for CPU, memory and disks is not known; evictions do not need it",
          "boot with psi=1"};
}

Finding of_btf(const Facts& facts) {
  if (facts.btf) return {"BTF", State::kOk, "there", "", ""};
  return {
      "BTF", State::kLimited, "no /sys/kernel/btf/vmlinux",
      "no BPF: cgroups are read from files, at tens of times the CPU time; who waited, and why, "
      "is not known",
      "take a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' are"};
}

std::string groups_from(const Readings& readings, std::string_view source) {
  std::vector<std::string_view> groups;
  for (std::size_t i = 0; i < HR_GROUPS; ++i)
    if (readings.sources[i] == source) groups.push_back(kGroupNames[i]);
  return fmt::format("{}", fmt::join(groups, " "));
}

Finding of_readings(const Facts& facts) {
  if (!facts.readings) return unknown("BPF sweep", facts.readings.error());
  const Readings& readings = *facts.readings;
  const std::string why = fmt::format("{}", fmt::join(readings.reasons, "; "));
  if (!readings.bpf)
    return {
        "BPF sweep", State::kLimited, "not at work: " + why,
        fmt::format("{} cgroups are read from files: the same decisions, at tens of times the "
                    "CPU time",
                    readings.cgroups),
        "Linux 6.1 or later with BTF, and CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN for headroomd"};
  const std::string files = groups_from(readings, "files");
  if (files.empty())
    return {"BPF sweep", State::kOk,
            fmt::format("serves every group of {} cgroups ({})", readings.cgroups, why), "", ""};
  return {"BPF sweep", State::kLimited,
          fmt::format("serves {}; files serve {}", groups_from(readings, "bpf"), files),
          "each cgroup is read from files as well: " + why,
          "report the disagreement, with this kernel's version"};
}

std::string_view without(std::string_view program) {
  if (program == "stall") return "who waits for memory, and because of whom, is not known";
  if (program == "throttle") return "how long waits for CPU quota are is not known";
  return "births and deaths of cgroups are noticed at the next pass, up to a second later";
}

Finding of_program(const Program& program, std::string_view subject) {
  const std::string left_out = fmt::format("{}", fmt::join(program.left_out, "; "));
  if (!program.loaded)
    return {subject, State::kLimited, program.loaded.error().what,
            std::string(without(program.name)),
            "Linux 6.1 or later with BTF and CONFIG_FUNCTION_TRACER=y"};
  if (!left_out.empty())
    return {subject, State::kLimited, "in part: " + left_out,
            "in part: " + std::string(without(program.name)), "take a kernel that has these hooks"};
  return {subject, State::kOk, "loads", "", ""};
}

std::string_view subject_of(const Program& program) {
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

// None is essential: each release has its own, and the sweep what it needs on each.
Finding of_kfuncs(const Facts& facts) {
  if (!facts.kfuncs) return unknown("kfuncs", facts.kfuncs.error());
  const std::string names = kfunc_names(*facts.kfuncs);
  return {"kfuncs", State::kOk, names.empty() ? "none on this kernel" : names, "", ""};
}

Finding of_symbols(const Facts& facts) {
  if (!facts.symbols) return unknown("kallsyms", facts.symbols.error());
  if (*facts.symbols) return {"kallsyms", State::kOk, "readable", "", ""};
  return {"kallsyms", State::kLimited, "addresses are hidden",
          "from 6.11 to 6.19 part of memory.stat is read from files",
          "set kernel.kptr_restrict to 1 or less, and leave headroomd CAP_SYSLOG"};
}

Finding of_clock(const Facts& facts) {
  const bool slow = facts.clock_source == "hpet" || facts.clock_source == "acpi_pm";
  const std::string source = facts.clock_source.empty() ? "unknown" : facts.clock_source;
  if (slow)
    return {"clock", State::kLimited, source + ": read through the bus",
            "each look at the time takes a microsecond or more, and the BPF programs take many",
            "find out why the kernel distrusts the TSC (dmesg | grep -i tsc)"};
  if (!facts.clock_synchronised)
    return {"clock", State::kLimited, source + ", not synchronised",
            "times in records may be off; intervals are right all the same",
            "run systemd-timesyncd or chrony"};
  return {"clock", State::kOk, source + ", synchronised", "", ""};
}

Finding of_systemd(const Facts& facts) {
  if (facts.systemd) return {"systemd", State::kOk, *facts.systemd + ", on the bus", "", ""};
  return {"systemd", State::kLimited, facts.systemd.error().what,
          "headroomctl cannot reach headroomd, and slices cannot be kept",
          "run systemd and dbus-daemon or dbus-broker"};
}

Finding of_configuration(const Facts& facts) {
  if (facts.configuration.empty()) return {"configuration", State::kOk, "good", "", ""};
  return {"configuration", State::kMissing,
          fmt::format("{}{}", facts.configuration.front(),
                      facts.configuration.size() > 1
                          ? fmt::format(" (and {} more)", facts.configuration.size() - 1)
                          : ""),
          "headroomd refuses to start, or keeps the one in force", "headroomd --check-config"};
}

Finding of_daemon(const Facts& facts) {
  if (!facts.daemon) return unknown("headroomd", facts.daemon.error());
  if (*facts.daemon)
    return {"headroomd", State::kOk, "running, mode " + (*facts.daemon)->mode, "", ""};
  return {"headroomd", State::kLimited, "not running", "nobody keeps this node",
          "systemctl enable --now headroomd"};
}

// Each armed pod holds four descriptors, each known cgroup one.
Finding of_descriptors(const Facts& facts) {
  const auto* daemon = facts.daemon && *facts.daemon ? &**facts.daemon : nullptr;
  const std::uint64_t most = daemon ? daemon->descriptors : facts.descriptors;
  const std::size_t cgroups = facts.readings ? facts.readings->cgroups : 0;
  const std::uint64_t needed = 1024 + 3 * cgroups;
  const std::string found = fmt::format("{} for {}", most, daemon ? "headroomd" : "this shell");
  if (most >= needed) return {"descriptors", State::kOk, found, "", ""};
  return {"descriptors", State::kLimited, found,
          fmt::format("{} would do for {} cgroups; beyond that they are opened anew each time, or "
                      "not seen",
                      needed, cgroups),
          "set LimitNOFILE=65536 in headroomd.service"};
}

Finding of_memory_lock(const Daemon* daemon) {
  if (!daemon) return unknown("memory lock", {std::string(kNoDaemon)});
  if (daemon->locked_bytes > 0) return {"memory lock", State::kOk, "held", "", ""};
  return {"memory lock", State::kLimited, "not held",
          "under pressure headroomd may be paged out just when it is needed",
          "set LimitMEMLOCK=infinity in headroomd.service, and leave it CAP_IPC_LOCK"};
}

Finding of_oom_score(const Daemon* daemon) {
  if (!daemon) return unknown("OOM score", {std::string(kNoDaemon)});
  const std::string found = std::to_string(daemon->oom_score_adj);
  if (daemon->oom_score_adj <= -999) return {"OOM score", State::kOk, found, "", ""};
  return {"OOM score", State::kLimited, found, "the kernel's OOM killer may choose headroomd",
          "set OOMScoreAdjust=-999 in headroomd.service"};
}

bool runs(const Facts& facts, std::string_view program) {
  return facts.rivals &&
         std::find(facts.rivals->begin(), facts.rivals->end(), program) != facts.rivals->end();
}

Finding of_rivals(const Facts& facts) {
  if (!facts.rivals) return unknown("others who kill", facts.rivals.error());
  if (facts.rivals->empty()) return {"others who kill", State::kOk, "none", "", ""};
  const bool kubelet = runs(facts, "kubelet");
  const bool others = facts.rivals->size() > (kubelet ? 1u : 0u);
  std::string remedy = others ? "stop and mask them (systemctl mask --now)" : "";
  if (kubelet)
    remedy += std::string(remedy.empty() ? "" : "; ") +
              "leave the kubelet its API, and evictionHard there at values headroom's come before";
  return {"others who kill", State::kLimited,
          fmt::format("{} running", fmt::join(*facts.rivals, ", ")),
          "two that act on one shortage kill twice, each by rules of its own", remedy};
}

// Slices and CPU sets, which a kubelet keeps as well.
Finding of_writers(const Facts& facts) {
  constexpr std::string_view kSubject = "others who set limits";
  if (!facts.rivals) return unknown(kSubject, facts.rivals.error());
  const bool kubelet = runs(facts, "kubelet") || runs(facts, "k3s-server");
  if (!kubelet || facts.enforced.empty()) return {kSubject, State::kOk, "none", "", ""};
  return {kSubject, State::kLimited,
          fmt::format("a kubelet is running, and {} enforced", fmt::join(facts.enforced, ", ")),
          "two that keep the same cgroups write over each other, again and again",
          "mode: observe here, or cgroupsPerQOS: false and cpuManagerPolicy: none there"};
}

Finding of_kubelet(const KubeletSource& kubelet) {
  constexpr std::string_view kSubject = "kubelet's pods";
  constexpr std::string_view kCost =
      "pods that are not known yet are judged by their cgroups alone, without priority and names";
  if (!kubelet.heard)
    return {kSubject, State::kLimited, "headroom-kube has told of none", std::string(kCost),
            "systemctl enable --now headroom-kube"};
  if (!kubelet.good)
    return {kSubject, State::kLimited, kubelet.error, std::string(kCost),
            "see headroom.kubernetes.kubelet in headroom.yaml(5)"};
  return {kSubject, State::kOk, fmt::format("{} from {}", kubelet.pods, kubelet.url), "", ""};
}

// With swap the kernel swaps before memory.available falls low: pods thrash, and no threshold of
// memory is crossed.
Finding of_swap(const Facts& facts) {
  if (!facts.swap) return {"swap", State::kOk, "off", "", ""};
  if (facts.swap_threshold) return {"swap", State::kOk, "on, with a threshold", "", ""};
  return {"swap", State::kLimited, "on, and swap.available has no threshold",
          "memory.available does not fall low before swap is full: nobody is evicted until then",
          "set swap.available in evictionHard, such as 10%, or headroom.pressure.memory"};
}

// A kubelet writes oom_score_adj when it starts a container, and never again.
Finding of_mirror(const Facts& facts) {
  constexpr std::string_view kSubject = "oom_score_adj";
  if (!facts.mirrors_scores) return {kSubject, State::kOk, "left alone", "", ""};
  if (!facts.rivals) return unknown(kSubject, facts.rivals.error());
  const bool kubelet = runs(facts, "kubelet") || runs(facts, "k3s-server");
  if (!kubelet) return {kSubject, State::kOk, "mirrors the ranking", "", ""};
  return {kSubject, State::kLimited, "a kubelet is running, and headroom.oomScoreAdj is mirror",
          "it sets each container's at its start and takes it to stay so: what it set is gone",
          "headroom.oomScoreAdj: leave"};
}

Finding of_quota(const Facts& facts) {
  if (!facts.project_quota) return unknown("project quota", facts.project_quota.error());
  if (*facts.project_quota) return {"project quota", State::kOk, "on, at " + facts.nodefs, "", ""};
  return {"project quota", State::kLimited, "off, at " + facts.nodefs,
          "pods' disk usage is found by walking their files, at a bounded pace",
          "mount it with prjquota (ext4 needs the project feature, tune2fs -O project)"};
}

Finding of_privilege(const Facts& facts) {
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

std::vector<Finding> findings(const Facts& facts) {
  Findings all{of_privilege(facts), of_hierarchy(facts), of_controllers(facts),
               of_kill(facts),      of_pressure(facts),  of_btf(facts),
               of_symbols(facts),   of_kfuncs(facts),    of_readings(facts)};
  if (!facts.programs) all.push_back(unknown("BPF programs", facts.programs.error()));
  for (const Program& program : facts.programs.value_or(std::vector<Program>{}))
    all.push_back(of_program(program, subject_of(program)));
  const Daemon* daemon = facts.daemon && *facts.daemon ? &**facts.daemon : nullptr;
  for (Finding finding :
       {of_clock(facts), of_systemd(facts), of_configuration(facts), of_daemon(facts),
        of_descriptors(facts), of_memory_lock(daemon), of_oom_score(daemon), of_rivals(facts),
        of_writers(facts), of_mirror(facts), of_swap(facts), of_quota(facts)})
    all.push_back(std::move(finding));
  if (facts.kubelet) all.push_back(of_kubelet(*facts.kubelet));
  return all;
}

bool works(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& each) { return each.state == State::kMissing; });
}

}  // namespace headroom::ctl::check
