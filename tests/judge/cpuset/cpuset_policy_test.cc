// SPDX-License-Identifier: Apache-2.0
// What a container asks for and gets, what goes back, and what a refusal says.
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/resources/pod_resources.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

StaticPolicy policy_of(StaticPolicyConfig config) {
  auto policy = StaticPolicy::of(std::move(config));
  if (!policy) ADD_FAILURE() << policy.error().front();
  return *std::move(policy);
}

// One socket, one node, 8 cores of two threads: core c is CPUs c and c+8. CPU 0 is reserved.
StaticPolicy small_policy(CpuPolicyOptions options = {}, TopologyRules rules = {}) {
  return policy_of({.topology = machine({.cores_per_node = 8}),
                    .options = options,
                    .reservation = {.cpus = CpuSet{0}},
                    .topology_rules = rules});
}

std::string has(const CpuState& state, const char* pod, const char* container) {
  const CpuSet* const cpus = exclusive_cpus(state, pod, container);
  return cpus ? cpus->format() : "shared";
}

CpuState admitted(const StaticPolicy& policy, const CpuState& state, const Pod& pod) {
  const auto next = admit(policy, state, pod);
  if (next) return *next;
  ADD_FAILURE() << pod.uid << "/" << next.error().container << ": "
                << message(next.error().refusal);
  return state;
}

// --- what a container asks for ---------------------------------------------------------------

TEST(CpuRequest, OnlyWholeCpusOfGuaranteedPodsAreExclusive) {
  struct Case {
    const char* says;
    const char* request;
    const char* limit;
    int wanted;
  };
  for (const Case& c : {Case{"whole", "2", "2", 2}, Case{"whole_in_millis", "3000m", "3", 3},
                        Case{"part_of_one", "1500m", "1500m", 0}, Case{"burstable", "2", "4", 0},
                        Case{"whole_as_a_power", "2e0", "2", 2},
                        Case{"a_hair_more", "2.000000001", "2.000000001", 0}}) {
    Pod pod = pod_of("p", {}, {container("c", c.request)});
    pod.containers[0].limits["cpu"] = *Quantity::parse(c.limit);
    EXPECT_EQ(exclusive_cpus_requested(pod, pod.containers[0], PodLevelMode::kOff), c.wanted)
        << c.says;
  }
}

TEST(CpuRequest, APodWithResourcesOfItsOwnHasNoneExclusive) {
  Pod pod = pod_of("p", {}, {container("c", "2")});
  ASSERT_EQ(exclusive_cpus_requested(pod, PodLevelMode::kOff), 2);
  pod.pod_level = pod.containers[0];
  EXPECT_EQ(qos_class(pod), QosClass::kGuaranteed);
  EXPECT_EQ(exclusive_cpus_requested(pod, PodLevelMode::kOff), 0);
}

TEST(CpuRequest, OfAPodIsItsMaximumAtOnce) {
  struct Case {
    const char* says;
    std::vector<Container> init;
    std::vector<Container> apps;
    int wanted;
  };
  for (const Case& c :
       {Case{"apps_together", {}, {container("a", "2"), container("b", "3")}, 5},
        Case{"a_large_init", {container("i", "7")}, {container("a", "2")}, 7},
        Case{"sidecars_beside_apps",
             {container("s", "1", true), container("i", "2")},
             {container("a", "4")},
             5},
        Case{"an_init_beside_earlier_sidecars",
             {container("s", "3", true), container("i", "4"), container("t", "1", true)},
             {container("a", "2")},
             7},
        Case{"parts_do_not_count", {}, {container("a", "2"), container("b", "500m")}, 2}})
    EXPECT_EQ(exclusive_cpus_requested(pod_of("p", c.init, c.apps), PodLevelMode::kOff), c.wanted)
        << c.says;
}

// --- allocating ------------------------------------------------------------------------------

TEST(StaticPolicy, CpusOfFinishedInitContainersAreReusedInThePod) {
  const StaticPolicy policy = small_policy();
  const Pod pod = pod_of("p", {container("i", "4"), container("s", "2", true), container("j", "2")},
                         {container("a", "3"), container("b", "500m")});
  const CpuState state = admitted(policy, policy.initial(), pod);
  EXPECT_EQ(has(state, "p", "i"), "1-2,9-10");
  EXPECT_EQ(has(state, "p", "s"), "1,9") << "of i, which has finished";
  EXPECT_EQ(has(state, "p", "j"), "2,10") << "of i, less what the sidecar holds";
  EXPECT_EQ(has(state, "p", "a"), "2,8,10");
  EXPECT_EQ(has(state, "p", "b"), "shared");
  EXPECT_TRUE(policy.find_faults(state).empty()) << policy.find_faults(state).front().what;

  // Another pod in between does not make it forget, as it does the kubelet.
  const Pod first = pod_of("p", {container("i", "4")}, {});
  const Pod whole = pod_of("p", {container("i", "4")}, {container("a", "4")});
  CpuState between = admitted(policy, policy.initial(), first);
  between = admitted(policy, between, pod_of("q", {}, {container("c", "2")}));
  EXPECT_EQ(has(admitted(policy, between, whole), "p", "a"), "1-2,9-10");
}

TEST(StaticPolicy, ReleasingAnInitContainerKeepsCpusUsedByThePod) {
  const StaticPolicy policy = small_policy();
  const Pod pod = pod_of("p", {container("i", "4")}, {container("a", "2")});
  const CpuState both = admitted(policy, policy.initial(), pod);
  const CpuState app = release_cpus(both, "p", "i");
  EXPECT_EQ(has(app, "p", "a"), "1,9");
  EXPECT_EQ(app.default_set, policy.topology().cpus() - (CpuSet{1, 9}));
  EXPECT_EQ(release_cpus(app, "p", "a"), policy.initial());
  EXPECT_EQ(release_cpus(app, "p", "unknown"), app);
  EXPECT_EQ(release_cpus(app, "unknown", "a"), app);
}

TEST(StaticPolicy, StaleCpusAreReleased) {
  const StaticPolicy policy = small_policy();
  const Pod kept = pod_of("kept", {}, {container("a", "2"), container("b", "1")});
  const Pod gone = pod_of("gone", {}, {container("a", "3")});
  CpuState state = admitted(policy, admitted(policy, policy.initial(), kept), gone);
  const Pod renamed = pod_of("kept", {}, {container("a", "2")});
  const Pod* const active[] = {&renamed};
  state = remove_stale(state, active);
  EXPECT_EQ(has(state, "kept", "a"), "1,9");
  EXPECT_EQ(has(state, "kept", "b"), "shared");
  EXPECT_EQ(state.entries.size(), 1U);
  EXPECT_TRUE(policy.find_faults(state).empty());
}

TEST(StaticPolicy, AContainerKeepsItsCpusOnAFullNode) {
  const StaticPolicy policy = small_policy({.full_pcpus_only = true});
  const Pod pod = pod_of("p", {}, {container("a", "14")});
  const CpuState full = admitted(policy, policy.initial(), pod);
  EXPECT_EQ(admitted(policy, full, pod), full) << "as after a restart of the daemon";
}

TEST(StaticPolicy, ARefusalHasAReasonAndChangesNothing) {
  struct Case {
    const char* says;
    CpuPolicyOptions options;
    TopologyRules rules;
    Pod pod;
    const char* container;
    CpuRefusal refusal;
    const char* reason;
  };
  const TopologyRules restricted{.policy = TopologyPolicy::kRestricted};
  for (const Case& c : {
           Case{"half_a_core",
                {.full_pcpus_only = true},
                {},
                pod_of("p", {}, {container("a", "2"), container("b", "3")}),
                "b",
                SmtAlignmentError{3, 2},
                "SMTAlignmentError"},
           Case{"the_core_of_a_reserved_cpu_does_not_count",
                {.full_pcpus_only = true},
                {},
                pod_of("p", {}, {container("a", "16")}),
                "a",
                SmtAlignmentError{16, 2, 14},
                "SMTAlignmentError"},
           Case{"too_many",
                {},
                {},
                pod_of("p", {}, {container("a", "10"), container("b", "6")}),
                "b",
                NotEnoughCpus{6, 5},
                "UnexpectedAdmissionError"},
           Case{"nowhere",
                {},
                restricted,
                pod_of("p", {}, {container("a", "16")}),
                "a",
                TopologyAffinityError{},
                "TopologyAffinityError"},
           Case{"nowhere_for_the_pod",
                {},
                {.policy = TopologyPolicy::kRestricted, .scope = TopologyScope::kPod},
                pod_of("p", {}, {container("a", "8"), container("b", "8")}),
                "",
                TopologyAffinityError{},
                "TopologyAffinityError"},
       }) {
    const StaticPolicy policy = small_policy(c.options, c.rules);
    const auto next = admit(policy, policy.initial(), c.pod);
    ASSERT_FALSE(next) << c.says;
    EXPECT_EQ(next.error().container, c.container) << c.says;
    EXPECT_EQ(next.error().refusal, c.refusal) << c.says << ": " << message(next.error().refusal);
    EXPECT_EQ(reason(next.error().refusal), c.reason);
  }
}

TEST(StaticPolicy, ScopePodKeepsItsContainersTogether) {
  // Two nodes of four cores; the first has room for one of the containers only.
  const StaticPolicyConfig config{.topology = machine({.sockets = 2, .cores_per_node = 4}),
                                  .reservation = {.cpus = CpuSet{0, 8}},
                                  .topology_rules = {.policy = TopologyPolicy::kSingleNumaNode}};
  const Pod pod = pod_of("p", {}, {container("a", "4"), container("b", "4")});
  const StaticPolicy apart = policy_of(config);
  const CpuState one_by_one = admitted(apart, apart.initial(), pod);
  EXPECT_EQ(has(one_by_one, "p", "a"), "1-2,9-10");
  EXPECT_EQ(has(one_by_one, "p", "b"), "4-5,12-13");

  StaticPolicyConfig by_pod = config;
  by_pod.topology_rules.scope = TopologyScope::kPod;
  const StaticPolicy together = policy_of(by_pod);
  const CpuState at_once = admitted(together, together.initial(), pod);
  EXPECT_EQ(has(at_once, "p", "a"), "4-5,12-13");
  EXPECT_EQ(has(at_once, "p", "b"), "6-7,14-15");
}

TEST(StaticPolicy, HintsOfOtherProvidersAreFollowed) {
  const StaticPolicy policy =
      policy_of({.topology = machine({.sockets = 2, .cores_per_node = 4}),
                 .reservation = {.cpus = CpuSet{0, 8}},
                 .topology_rules = {.policy = TopologyPolicy::kBestEffort}});
  const Pod pod = pod_of("p", {}, {container("a", "2")});
  const auto device_on_1 = [](const Container*) {
    return std::vector<ProviderHints>{{{"nic", HintList{{NodeSet::of(1), true}}}}};
  };
  const auto next = admit(policy, policy.initial(), pod, device_on_1);
  ASSERT_TRUE(next);
  EXPECT_EQ(has(*next, "p", "a"), "4,12");
}

// Two nodes of four cores; the pod has CPUs on the second.
TEST(StaticPolicy, HintsOfAssignedCpusAreTheirNodes) {
  const StaticPolicy policy = policy_of({.topology = machine({.sockets = 2, .cores_per_node = 4}),
                                         .reservation = {.cpus = CpuSet{0, 8}}});
  const Pod pod = pod_of("p", {}, {container("a", "4"), container("b", "2")});
  const CpuState state{.default_set = policy.topology().cpus() - CpuSet{4, 5, 6, 12, 13, 14},
                       .entries = {{"p", {{"a", {4, 5, 12, 13}}, {"b", {6, 14}}}}}};
  const HintList on_its_node{{NodeSet{0b10}, true}, {NodeSet{0b11}, false}};
  EXPECT_EQ(policy.hints(state, pod, pod.containers[0]).at("cpu"), on_its_node);
  EXPECT_EQ(policy.hints(state, pod).at("cpu"), on_its_node);

  // It asks for another number than it has: that cannot be had, since nothing is taken or added.
  for (const char* const other : {"2", "6"}) {
    const Pod resized = pod_of("p", {}, {container("a", other), container("b", "2")});
    EXPECT_EQ(policy.hints(state, resized, resized.containers[0]).at("cpu"), HintList{}) << other;
    EXPECT_EQ(policy.hints(state, resized).at("cpu"), HintList{}) << other;
  }

  // One container is still to come: what the other has must lie inside.
  const Pod more = pod_of("p", {}, {container("a", "4"), container("b", "2"), container("c", "2")});
  EXPECT_EQ(policy.hints(state, more).at("cpu"), on_its_node);
  EXPECT_EQ(policy.hints(state, pod_of("p", {}, {container("a", "500m")})), ProviderHints{});
}

TEST(StaticPolicy, OfflineCpusAreNotAssigned) {
  const StaticPolicy policy = small_policy();
  const Pod pod = pod_of("p", {container("i", "2")}, {container("a", "2")});
  const CpuState state{.default_set = CpuSet::range(0, 31), .entries = {{"p", {{"i", {40, 41}}}}}};
  const auto next = policy.allocate(state, pod, pod.containers[0], NodeSet::of(0));
  ASSERT_TRUE(next);
  EXPECT_EQ(has(*next, "p", "a"), "1,9");
  EXPECT_EQ(policy.hints(state, pod).at("cpu"), (HintList{{NodeSet::of(0), true}}));
}

// --- validation ------------------------------------------------------------------------------

TEST(StateFaults, AreAllReported) {
  using Kind = StateFault::Kind;
  struct Case {
    const char* says;
    bool strict;
    CpuState state;
    std::vector<Kind> kinds;
  };
  const CpuSet all = CpuSet::range(0, 15);
  const auto with = [](CpuSet shared, CpuSet a) {
    return CpuState{.default_set = std::move(shared), .entries = {{"p", {{"c", std::move(a)}}}}};
  };
  for (const Case& c : {
           Case{"new", false, {}, {}},
           Case{"sound", false, with(all - CpuSet{3}, {3}), {}},
           Case{"sound_and_strict", true, with(all - CpuSet{0, 3}, {3}), {}},
           Case{"nothing_shared", false, with({}, all), {Kind::kEmptyDefault}},
           Case{"reserved_given_away", false, with(all - CpuSet{0}, {0}), {Kind::kReservedMissing}},
           Case{"now_strict",
                true,
                with(all - CpuSet{3}, {3}),
                {Kind::kReservedShared, Kind::kOtherCpus}},
           Case{"shared_and_exclusive", false, with(all, {3}), {Kind::kOverlap}},
           Case{"a_cpu_has_gone",
                false,
                with(CpuSet::range(0, 17) - CpuSet{3}, {3}),
                {Kind::kOtherCpus}},
           Case{"a_cpu_has_come", false, with(all - CpuSet{3, 5}, {3}), {Kind::kOtherCpus}},
           Case{"everything",
                false,
                with(CpuSet{1, 2}, {1}),
                {Kind::kReservedMissing, Kind::kOverlap, Kind::kOtherCpus}},
       }) {
    std::vector<Kind> kinds;
    for (const StateFault& fault :
         small_policy({.strict_reservation = c.strict}).find_faults(c.state))
      kinds.push_back(fault.kind);
    EXPECT_EQ(kinds, c.kinds) << c.says;
  }
}

}  // namespace
}  // namespace headroom
