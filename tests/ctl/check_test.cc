// SPDX-License-Identifier: Apache-2.0
// headroomctl check: a host's facts, and what is made of them.
#include "ctl/check/check_command.h"
#include "ctl/check/findings.h"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl::check {
namespace {

HostFacts good_host() {
  HostFacts facts;
  facts.root = true;
  facts.kernel = "6.12.0";
  facts.cgroups = {.mount = "/sys/fs/cgroup",
                   .unified = true,
                   .controllers = {"cpuset", "cpu", "io", "memory", "pids"},
                   .unsupported_reason = ""};
  facts.cgroup_kill = true;
  facts.pressure = facts.btf = true;
  facts.symbols = true;
  facts.kfuncs = HR_KFUNC_CGROUP_FLUSH;
  SweepFacts readings{
      .bpf = true, .sources = {}, .source_notes = {"memory.stat: by table"}, .cgroups = 40};
  readings.sources.fill("bpf");
  facts.readings = readings;
  facts.programs =
      std::vector<ProgramFacts>{{"stall", {}, {}}, {"throttle", {}, {}}, {"lifecycle", {}, {}}};
  facts.clock_source = "tsc";
  facts.clock_synchronised = true;
  facts.descriptors = 1024;
  facts.systemd = "257";
  facts.daemon = DaemonFacts{
      .mode = "enforce", .descriptors = 65536, .locked_bytes = 1 << 20, .oom_score_adj = -999};
  facts.nodefs = "/var";
  facts.project_quota = true;
  return facts;
}

const Finding* find(const std::vector<Finding>& all, std::string_view subject) {
  for (const Finding& each : all)
    if (each.subject == subject) return &each;
  return nullptr;
}

TEST(Check, AGoodHostHasNoFindings) {
  for (const Finding& each : findings(good_host()))
    EXPECT_EQ(each.state, State::kOk) << each.subject << ": " << each.found;
}

TEST(Check, ZswapIsNoSubjectUnlessItIsAskedFor) {
  EXPECT_EQ(find(findings(good_host()), "zswap"), nullptr);
}

struct Case {
  const char* name;
  std::function<void(HostFacts&)> change;
  std::string_view subject;
  State state;
  const char* found;  // in it
  const char* cost;
  const char* remedy;
};

const Case kCases[] = {
    {"v1",
     [](HostFacts& f) {
       f.cgroups = {.mount = "",
                    .unified = false,
                    .controllers = {},
                    .unsupported_reason = "cgroup v1 host"};
     },
     "cgroup v2", State::kMissing, "v1 host", "refuses", "unified_cgroup_hierarchy=1"},
    {"memory_disabled", [](HostFacts& f) { f.cgroups.unsupported_reason = "lacks memory"; },
     "cgroup v2", State::kMissing, "lacks memory", "refuses", "cgroup_disable="},
    {"no_io",
     [](HostFacts& f) {
       f.cgroups.controllers = {"cpuset", "cpu", "memory", "pids"};
     },
     "controllers", State::kLimited, "no io", "disks", "cgroup_disable="},
    {"no_kill", [](HostFacts& f) { f.cgroup_kill = false; }, "cgroup.kill", State::kMissing,
     "missing", "no pod", "5.14"},
    {"no_swap", [](HostFacts& f) { f.swap = false; }, "swap", State::kOk, "kubelet's", "", ""},
    {"no_swap_and_thrashing",
     [](HostFacts& f) {
       f.swap = false;
       f.thrash_aware = true;
     },
     "swap", State::kOk, "while the node thrashes", "", ""},
    {"swap_that_counts", [](HostFacts& f) { f.swap = true; }, "swap", State::kOk,
     "what swap gains and costs", "", ""},
    {"swap_without_a_threshold",
     [](HostFacts& f) {
       f.swap = true;
       f.swap_aware = false;
     },
     "swap", State::kLimited, "no threshold", "does not fall low", "swap.available"},
    {"pages_kept_in_zswap",
     [](HostFacts& f) { f.keeps_in_zswap = f.zswap_writeback = f.zswap_enabled = true; }, "zswap",
     State::kOk, "stays in it", "", ""},
    {"a_kernel_before_6_8", [](HostFacts& f) { f.keeps_in_zswap = f.zswap_enabled = true; },
     "zswap", State::kLimited, "no memory.zswap.writeback", "no effect", "6.8"},
    {"zswap_is_disabled", [](HostFacts& f) { f.keeps_in_zswap = f.zswap_writeback = true; },
     "zswap", State::kLimited, "disabled", "no effect", "zswap.enabled=1"},
    {"swap_with_one",
     [](HostFacts& f) {
       f.swap = f.swap_threshold = true;
       f.swap_aware = false;
     },
     "swap", State::kOk, "swap.available has a threshold", "", ""},
    {"kernel_memory_unwatched", [](HostFacts& f) { f.kernel_threshold = false; }, "kernel memory",
     State::kLimited, "no threshold", "OOM killer", "kernelMemAvailable"},
    {"little_kernel_memory", [](HostFacts& f) { f.memory = 4_GiB; }, "kernel memory", State::kOk,
     "neither anon nor file", "", ""},
    {"much_kernel_memory",
     [](HostFacts& f) {
       f.memory = 4_GiB;
       f.unaccounted = 500_MiB;
     },
     "kernel memory", State::kLimited, "500Mi", "memory.available counts", "Percpu"},
    {"mirror_alone", [](HostFacts& f) { f.mirrors_scores = true; }, "oom_score_adj", State::kOk,
     "mirrors", "", ""},
    {"mirror_beside_a_kubelet",
     [](HostFacts& f) {
       f.mirrors_scores = true;
       f.conflicting_daemons = std::vector<std::string>{"kubelet"};
     },
     "oom_score_adj", State::kLimited, "kubelet is running", "that value is overwritten", "leave"},
    {"kill_not_seen", [](HostFacts& f) { f.cgroup_kill = failure("hidden"); }, "cgroup.kill",
     State::kUnknown, "hidden", "", ""},
    {"psi_off", [](HostFacts& f) { f.pressure = false; }, "pressure (PSI)", State::kLimited, "off",
     "waited", "psi=1"},
    {"no_btf", [](HostFacts& f) { f.btf = false; }, "BTF", State::kLimited, "btf/vmlinux", "no BPF",
     "CONFIG_DEBUG_INFO_BTF"},
    {"symbols_hidden", [](HostFacts& f) { f.symbols = false; }, "kallsyms", State::kLimited,
     "hidden", "memory.stat", "kptr_restrict"},
    {"no_sweep",
     [](HostFacts& f) {
       f.readings->bpf = false;
       f.readings->source_notes = {"bpf: EPERM"};
     },
     "BPF sweep", State::kLimited, "EPERM", "40 cgroups", "6.1"},
    {"a_group_from_files", [](HostFacts& f) { f.readings->sources[0] = "files"; }, "BPF sweep",
     State::kLimited, "files serve memory_usage", "as well", "report"},
    {"no_stall",
     [](HostFacts& f) { (*f.programs)[0].loaded = failure("no function psi_memstall_enter"); },
     "BPF stall", State::kLimited, "psi_memstall_enter", "waits for memory", "FUNCTION_TRACER"},
    {"no_throttle", [](HostFacts& f) { (*f.programs)[1].loaded = failure("refused"); },
     "BPF throttle", State::kLimited, "refused", "quota", ""},
    {"lifecycle_in_part",
     [](HostFacts& f) { (*f.programs)[2].skipped_programs = {"born: no tracepoint"}; },
     "BPF lifecycle", State::kLimited, "born: no tracepoint", "in part", "hooks"},
    {"programs_not_tried", [](HostFacts& f) { f.programs = failure("needs root"); }, "BPF programs",
     State::kUnknown, "needs root", "", ""},
    {"slow_clock", [](HostFacts& f) { f.clock_source = "hpet"; }, "clock", State::kLimited, "hpet",
     "microsecond", "TSC"},
    {"wrong_clock", [](HostFacts& f) { f.clock_synchronised = false; }, "clock", State::kLimited,
     "not synchronised", "records", "chrony"},
    {"no_bus", [](HostFacts& f) { f.systemd = failure("reach the system bus"); }, "systemd",
     State::kLimited, "system bus", "cannot reach", "dbus"},
    {"wrong_configuration",
     [](HostFacts& f) {
       f.configuration = {"a.yaml:3: no", "b", "c"};
     },
     "configuration", State::kMissing, "a.yaml:3: no (and 2 more)", "refuses", "--check-config"},
    {"renamed_key",
     [](HostFacts& f) {
       f.configuration_warnings = {"a.yaml:3: measureEvery is now measurePeriod", "b"};
     },
     "configuration", State::kOk, "valid; a.yaml:3: measureEvery is now measurePeriod (and 1 more)",
     "", ""},
    {"no_daemon", [](HostFacts& f) { f.daemon = std::nullopt; }, "headroomd", State::kLimited,
     "not running", "does not guard", "enable"},
    {"daemon_not_seen", [](HostFacts& f) { f.daemon = failure("no bus"); }, "headroomd",
     State::kUnknown, "no bus", "", ""},
    {"few_descriptors", [](HostFacts& f) { (*f.daemon)->descriptors = 1100; }, "descriptors",
     State::kLimited, "1100 for headroomd", "1144 are enough", "LimitNOFILE"},
    {"few_in_this_shell", [](HostFacts& f) { f.daemon = std::nullopt; }, "descriptors",
     State::kLimited, "1024 for this shell", "1144", "LimitNOFILE"},
    {"not_locked", [](HostFacts& f) { (*f.daemon)->locked_bytes = 0; }, "memory lock",
     State::kLimited, "not held", "paged out", "LimitMEMLOCK"},
    {"oom_score", [](HostFacts& f) { (*f.daemon)->oom_score_adj = 0; }, "OOM score",
     State::kLimited, "0", "may choose", "OOMScoreAdjust"},
    {"oomd", [](HostFacts& f) { f.conflicting_daemons = std::vector<std::string>{"systemd-oomd"}; },
     "other programs that kill", State::kLimited, "systemd-oomd running", "twice", "mask"},
    {"kubelet",
     [](HostFacts& f) {
       f.conflicting_daemons = std::vector<std::string>{"earlyoom", "kubelet"};
     },
     "other programs that kill", State::kLimited, "earlyoom, kubelet", "twice",
     "; keep the kubelet"},
    {"two_keepers",
     [](HostFacts& f) {
       f.conflicting_daemons = std::vector<std::string>{"kubelet"};
       f.enforced = {"headroom.slices", "headroom.cpus"};
     },
     "other programs that set limits", State::kLimited, "headroom.slices, headroom.cpus enforced",
     "overwrite each other's values", "observe"},
    {"no_quota", [](HostFacts& f) { f.project_quota = false; }, "project quota", State::kLimited,
     "/var", "walking", "prjquota"},
    {"kubelet_unheard_of",
     [](HostFacts& f) {
       f.kubelet = KubeletSource{
           .url = "https://h", .loaded = false, .last_poll_ok = false, .error = "", .pods = 0};
     },
     "kubelet's pods", State::kLimited, "headroom-kube", "cgroups alone",
     "systemctl enable --now headroom-kube"},
    {"kubelet_in_trouble",
     [](HostFacts& f) {
       f.kubelet = KubeletSource{
           .url = "https://h", .loaded = true, .last_poll_ok = false, .error = "401", .pods = 0};
     },
     "kubelet's pods", State::kLimited, "401", "cgroups alone", "headroom.yaml(5)"},
    {"keys_without_effect",
     [](HostFacts& f) {
       f.ignored_keys = {"imageGCHighThresholdPercent", "imageGCLowThresholdPercent",
                         "shutdownGracePeriod"};
     },
     "kubelet's keys", State::kLimited,
     "ignored: imageGCHighThresholdPercent, imageGCLowThresholdPercent, shutdownGracePeriod",
     "images are removed by headroom.reclaim.images alone; pods are not stopped before",
     "remove them"},
    {"keys_beside_a_kubelet",
     [](HostFacts& f) {
       f.ignored_keys = {"shutdownGracePeriod"};
       f.conflicting_daemons = std::vector<std::string>{"kubelet"};
     },
     "kubelet's keys", State::kOk, "left to the kubelet: shutdownGracePeriod", "", ""},
    {"not_root", [](HostFacts& f) { f.root = false; }, "privilege", State::kUnknown, "not root", "",
     "as root"},
};

TEST(Check, AKubeletThatOwnsItsSlicesIsNoConflict) {
  HostFacts facts = good_host();
  facts.enforced = {"headroom.slices"};
  EXPECT_EQ(find(findings(facts), "other programs that set limits")->state, State::kOk);
  facts.conflicting_daemons = std::vector<std::string>{"kubelet"};
  facts.enforced.clear();
  EXPECT_EQ(find(findings(facts), "other programs that set limits")->state, State::kOk);
}

TEST(Check, AKubeletThatAnswersIsOk) {
  HostFacts facts = good_host();
  EXPECT_EQ(find(findings(facts), "kubelet's pods"), nullptr) << "none is configured";
  facts.kubelet = KubeletSource{
      .url = "https://h", .loaded = true, .last_poll_ok = true, .error = "", .pods = 7};
  EXPECT_EQ(find(findings(facts), "kubelet's pods")->found, "7 from https://h");
}

TEST(Check, EachMissingFeatureHasCostAndRemedy) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    HostFacts facts = good_host();
    c.change(facts);
    const auto all = findings(facts);
    const Finding* finding = find(all, c.subject);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->state, c.state);
    EXPECT_NE(finding->found.find(c.found), std::string::npos) << finding->found;
    EXPECT_NE(finding->cost.find(c.cost), std::string::npos) << finding->cost;
    EXPECT_NE(finding->remedy.find(c.remedy), std::string::npos) << finding->remedy;
    EXPECT_EQ(works(all), c.state != State::kMissing);
  }
}

// The remedy is a command of the distribution that runs here; without os-release it is in words.
TEST(Check, ARemedyNamesTheCommandsOfTheDistribution) {
  HostFacts facts = good_host();
  facts.pressure = false;
  facts.clock_synchronised = false;
  facts.cgroup_kill = false;
  struct Row {
    const char* os_release;
    const char* pressure;
    const char* clock;
    const char* kernel;
  };
  for (const Row& row :
       {Row{"", "boot with psi=1", "install chrony", "use Linux 5.14 or later"},
        Row{"ID=debian\nVERSION_CODENAME=bullseye\n", "update-grub", "apt install chrony",
            "apt install -t bullseye-backports"},
        Row{"ID=rhel\nVERSION_ID=9.6\n", "grubby --update-kernel=ALL --args='psi=1'",
            "dnf install chrony", "release 10"}}) {
    facts.system = OperatingSystem::parse(row.os_release);
    const auto all = findings(facts);
    for (const auto& [subject, remedy] :
         {std::pair{"pressure (PSI)", row.pressure}, std::pair{"clock", row.clock},
          std::pair{"cgroup.kill", row.kernel}})
      EXPECT_NE(find(all, subject)->remedy.find(remedy), std::string::npos)
          << find(all, subject)->remedy;
  }
}

TEST(Check, ProblemsAreExplainedBelowTheTable) {
  const std::vector<Finding> all{{"BTF", State::kOk, "there", "", ""},
                                 {"clock", State::kLimited, "hpet\x1b", "slow", "look"},
                                 {"kfuncs", State::kUnknown, "needs root", "", ""}};
  EXPECT_EQ(render("6.12", all, {}),
            "CHECK   STATE    FOUND\n"
            "BTF     ok       there\n"
            "clock   limited  hpet?\n"
            "kfuncs  unknown  needs root\n"
            "\nclock (limited)\n"
            "  costs: slow\n"
            "  do:    look\n"
            "\nheadroom works here (headroom " HEADROOM_VERSION ", Linux 6.12)\n");
}

TEST(Check, AsJson) {
  const auto json = nlohmann::json::parse(
      as_json("6.12", {{"cgroup v2", State::kMissing, "none", "all", "boot"}}));
  EXPECT_EQ(json["kernel"], "6.12");
  EXPECT_EQ(json["works"], false);
  EXPECT_EQ(json["checks"][0]["state"], "missing");
  EXPECT_EQ(json["checks"][0]["remedy"], "boot");
}

}  // namespace
}  // namespace headroom::ctl::check
