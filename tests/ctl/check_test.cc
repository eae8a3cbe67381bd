// SPDX-License-Identifier: Apache-2.0
// headroomctl check: a host's facts, and what is made of them.
#include "ctl/check/findings.h"
#include "ctl/check/view.h"

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl::check {
namespace {

Facts good_host() {
  Facts facts;
  facts.root = true;
  facts.kernel = "6.12.0";
  facts.cgroups = {.mount = "/sys/fs/cgroup",
                   .unified = true,
                   .controllers = {"cpuset", "cpu", "io", "memory", "pids"},
                   .refusal = ""};
  facts.cgroup_kill = true;
  facts.pressure = facts.btf = true;
  facts.symbols = true;
  facts.kfuncs = HR_KFUNC_CGROUP_FLUSH;
  Readings readings{
      .bpf = true, .sources = {}, .reasons = {"memory.stat: by table"}, .cgroups = 40};
  readings.sources.fill("bpf");
  facts.readings = readings;
  facts.programs =
      std::vector<Program>{{"stall", {}, {}}, {"throttle", {}, {}}, {"lifecycle", {}, {}}};
  facts.clock_source = "tsc";
  facts.clock_synchronised = true;
  facts.descriptors = 1024;
  facts.systemd = "257";
  facts.daemon = Daemon{
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

TEST(Check, OfAGoodHostAllIsWell) {
  for (const Finding& each : findings(good_host()))
    EXPECT_EQ(each.state, State::kOk) << each.subject << ": " << each.found;
}

struct Case {
  const char* name;
  std::function<void(Facts&)> change;
  std::string_view subject;
  State state;
  const char* found;  // in it
  const char* cost;
  const char* remedy;
};

const Case kCases[] = {
    {"v1",
     [](Facts& f) {
       f.cgroups = {.mount = "", .unified = false, .controllers = {}, .refusal = "cgroup v1 host"};
     },
     "cgroup v2", State::kMissing, "v1 host", "refuses", "unified_cgroup_hierarchy=1"},
    {"memory_disabled", [](Facts& f) { f.cgroups.refusal = "lacks memory"; }, "cgroup v2",
     State::kMissing, "lacks memory", "refuses", "cgroup_disable="},
    {"no_io",
     [](Facts& f) {
       f.cgroups.controllers = {"cpuset", "cpu", "memory", "pids"};
     },
     "controllers", State::kLimited, "no io", "disks", "cgroup_disable="},
    {"no_kill", [](Facts& f) { f.cgroup_kill = false; }, "cgroup.kill", State::kMissing,
     "not there", "no pod", "5.14"},
    {"swap_without_a_threshold", [](Facts& f) { f.swap = true; }, "swap", State::kLimited,
     "no threshold", "does not fall low", "swap.available"},
    {"swap_with_one", [](Facts& f) { f.swap = f.swap_threshold = true; }, "swap", State::kOk,
     "with a threshold", "", ""},
    {"mirror_alone", [](Facts& f) { f.mirrors_scores = true; }, "oom_score_adj", State::kOk,
     "mirrors", "", ""},
    {"mirror_beside_a_kubelet",
     [](Facts& f) {
       f.mirrors_scores = true;
       f.rivals = std::vector<std::string>{"kubelet"};
     },
     "oom_score_adj", State::kLimited, "kubelet is running", "what it set is gone", "leave"},
    {"kill_not_seen", [](Facts& f) { f.cgroup_kill = failure("hidden"); }, "cgroup.kill",
     State::kUnknown, "hidden", "", ""},
    {"psi_off", [](Facts& f) { f.pressure = false; }, "pressure (PSI)", State::kLimited, "off",
     "waited", "psi=1"},
    {"no_btf", [](Facts& f) { f.btf = false; }, "BTF", State::kLimited, "btf/vmlinux", "no BPF",
     "CONFIG_DEBUG_INFO_BTF"},
    {"symbols_hidden", [](Facts& f) { f.symbols = false; }, "kallsyms", State::kLimited, "hidden",
     "memory.stat", "kptr_restrict"},
    {"no_sweep",
     [](Facts& f) {
       f.readings->bpf = false;
       f.readings->reasons = {"bpf: EPERM"};
     },
     "BPF sweep", State::kLimited, "EPERM", "40 cgroups", "6.1"},
    {"a_group_from_files", [](Facts& f) { f.readings->sources[0] = "files"; }, "BPF sweep",
     State::kLimited, "files serve memory_usage", "as well", "report"},
    {"no_stall",
     [](Facts& f) { (*f.programs)[0].loaded = failure("no function psi_memstall_enter"); },
     "BPF stall", State::kLimited, "psi_memstall_enter", "who waits", "FUNCTION_TRACER"},
    {"no_throttle", [](Facts& f) { (*f.programs)[1].loaded = failure("refused"); }, "BPF throttle",
     State::kLimited, "refused", "quota", ""},
    {"lifecycle_in_part", [](Facts& f) { (*f.programs)[2].left_out = {"born: no tracepoint"}; },
     "BPF lifecycle", State::kLimited, "born: no tracepoint", "in part", "hooks"},
    {"programs_not_tried", [](Facts& f) { f.programs = failure("needs root"); }, "BPF programs",
     State::kUnknown, "needs root", "", ""},
    {"slow_clock", [](Facts& f) { f.clock_source = "hpet"; }, "clock", State::kLimited, "hpet",
     "microsecond", "TSC"},
    {"wrong_clock", [](Facts& f) { f.clock_synchronised = false; }, "clock", State::kLimited,
     "not synchronised", "records", "chrony"},
    {"no_bus", [](Facts& f) { f.systemd = failure("reach the system bus"); }, "systemd",
     State::kLimited, "system bus", "cannot reach", "dbus"},
    {"wrong_configuration",
     [](Facts& f) {
       f.configuration = {"a.yaml:3: no", "b", "c"};
     },
     "configuration", State::kMissing, "a.yaml:3: no (and 2 more)", "refuses", "--check-config"},
    {"no_daemon", [](Facts& f) { f.daemon = std::nullopt; }, "headroomd", State::kLimited,
     "not running", "nobody", "enable"},
    {"daemon_not_seen", [](Facts& f) { f.daemon = failure("no bus"); }, "headroomd",
     State::kUnknown, "no bus", "", ""},
    {"few_descriptors", [](Facts& f) { (*f.daemon)->descriptors = 1100; }, "descriptors",
     State::kLimited, "1100 for headroomd", "1144 would do", "LimitNOFILE"},
    {"few_in_this_shell", [](Facts& f) { f.daemon = std::nullopt; }, "descriptors", State::kLimited,
     "1024 for this shell", "1144", "LimitNOFILE"},
    {"not_locked", [](Facts& f) { (*f.daemon)->locked_bytes = 0; }, "memory lock", State::kLimited,
     "not held", "paged out", "LimitMEMLOCK"},
    {"oom_score", [](Facts& f) { (*f.daemon)->oom_score_adj = 0; }, "OOM score", State::kLimited,
     "0", "may choose", "OOMScoreAdjust"},
    {"oomd", [](Facts& f) { f.rivals = std::vector<std::string>{"systemd-oomd"}; },
     "others who kill", State::kLimited, "systemd-oomd running", "twice", "mask"},
    {"kubelet",
     [](Facts& f) {
       f.rivals = std::vector<std::string>{"earlyoom", "kubelet"};
     },
     "others who kill", State::kLimited, "earlyoom, kubelet", "twice", "; leave the kubelet"},
    {"two_keepers",
     [](Facts& f) {
       f.rivals = std::vector<std::string>{"kubelet"};
       f.enforced = {"headroom.slices", "headroom.cpus"};
     },
     "others who set limits", State::kLimited, "headroom.slices, headroom.cpus enforced",
     "over each other", "observe"},
    {"no_quota", [](Facts& f) { f.project_quota = false; }, "project quota", State::kLimited,
     "/var", "walking", "prjquota"},
    {"kubelet_unheard_of",
     [](Facts& f) {
       f.kubelet =
           KubeletSource{.url = "https://h", .heard = false, .good = false, .error = "", .pods = 0};
     },
     "kubelet's pods", State::kLimited, "headroom-kube", "cgroups alone",
     "systemctl enable --now headroom-kube"},
    {"kubelet_in_trouble",
     [](Facts& f) {
       f.kubelet = KubeletSource{
           .url = "https://h", .heard = true, .good = false, .error = "401", .pods = 0};
     },
     "kubelet's pods", State::kLimited, "401", "cgroups alone", "headroom.yaml(5)"},
    {"not_root", [](Facts& f) { f.root = false; }, "privilege", State::kUnknown, "not root", "",
     "as root"},
};

TEST(Check, AKubeletThatIsLeftItsSlicesIsNoConflict) {
  Facts facts = good_host();
  facts.enforced = {"headroom.slices"};
  EXPECT_EQ(find(findings(facts), "others who set limits")->state, State::kOk);
  facts.rivals = std::vector<std::string>{"kubelet"};
  facts.enforced.clear();
  EXPECT_EQ(find(findings(facts), "others who set limits")->state, State::kOk);
}

TEST(Check, AKubeletThatAnswersIsWell) {
  Facts facts = good_host();
  EXPECT_EQ(find(findings(facts), "kubelet's pods"), nullptr) << "nobody told of one";
  facts.kubelet =
      KubeletSource{.url = "https://h", .heard = true, .good = true, .error = "", .pods = 7};
  EXPECT_EQ(find(findings(facts), "kubelet's pods")->found, "7 from https://h");
}

TEST(Check, EachLackSaysWhatItCostsAndWhatToDo) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Facts facts = good_host();
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

TEST(Check, WhatIsNotWellIsExplainedBelowTheTable) {
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
