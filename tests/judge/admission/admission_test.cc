// SPDX-License-Identifier: Apache-2.0
// Admission of one pod: under pressure, by what is left, by place, by taints; every reason why not.
#include "judge/admission/admission_node.h"
#include "judge/admission/pod_admission.h"
#include "judge/admission/scheduler.h"

#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using Lines = std::vector<std::string>;
using Operator = LabelRequirement::Operator;

Lines reasons(const std::vector<AdmitFailure>& refusals) {
  Lines lines;
  for (const AdmitFailure& each : refusals)
    lines.push_back(each.reason);
  return lines;
}
Lines messages(const Admission& admission) {
  Lines lines;
  for (const AdmitFailure& each : admission.refusals)
    lines.push_back(each.message);
  return lines;
}
Lines preempted(const Admission& admission, const NodeState& node) {
  Lines names;
  for (const std::size_t index : admission.preempted)
    names.push_back(node.pods[index].name);
  return names;
}

Toleration of_memory_pressure() {
  return {.key = "node.kubernetes.io/memory-pressure",
          .op = Toleration::Operator::kExists,
          .effect = TaintEffect::kNoSchedule};
}

TEST(AdmissionUnderPressure, FollowsTheKubeletExactly) {
  constexpr std::array<bool, kConditions> kNone{}, kMemory{true}, kDisk{false, true},
      kPid{false, false, true}, kMemoryAndPid{true, false, true};
  const Pod best_effort = pod_asking("b");
  const Pod burstable = pod_asking("u", {.cpu = "1"});
  const Pod guaranteed = pod_asking("g", {.cpu = "1", .memory = "1Gi"}, true);
  Pod tolerant = best_effort;
  tolerant.placement.tolerations = {of_memory_pressure()};
  Pod tolerates_disk = guaranteed;
  tolerates_disk.placement.tolerations = {{.op = Toleration::Operator::kExists}};
  Pod critical = best_effort;
  critical.priority = kSystemCriticalPriority;
  Pod is_static = best_effort;
  is_static.is_static = true;
  struct Case {
    const char* says;
    const Pod& pod;
    std::array<bool, kConditions> conditions;
    const char* refused;  // null: admitted
  };
  for (const Case& c : {Case{"no_condition", best_effort, kNone, nullptr},
                        Case{"memory_best_effort", best_effort, kMemory,
                             "The node had condition: [MemoryPressure]. "},
                        Case{"memory_burstable", burstable, kMemory, nullptr},
                        Case{"memory_guaranteed", guaranteed, kMemory, nullptr},
                        Case{"memory_tolerated", tolerant, kMemory, nullptr},
                        Case{"disk_refuses_guaranteed", guaranteed, kDisk,
                             "The node had condition: [DiskPressure]. "},
                        Case{"disk_cannot_be_tolerated", tolerates_disk, kDisk,
                             "The node had condition: [DiskPressure]. "},
                        Case{"pid", burstable, kPid, "The node had condition: [PIDPressure]. "},
                        Case{"memory_beside_another", burstable, kMemoryAndPid,
                             "The node had condition: [MemoryPressure PIDPressure]. "},
                        Case{"critical_by_priority", critical, kMemoryAndPid, nullptr},
                        Case{"critical_as_static", is_static, kDisk, nullptr}}) {
    const auto refusal = pressure_failure(c.pod, c.conditions);
    ASSERT_EQ(refusal.has_value(), c.refused != nullptr) << c.says;
    if (!refusal) continue;
    EXPECT_EQ(refusal->reason, "Evicted") << c.says;
    EXPECT_EQ(refusal->message, c.refused) << c.says;
  }
}

TEST(AdmissionByFit, ReportsShortagesInTheKubeletsWords) {
  NodeState node = node_named("n");
  node.pods = {on_node(pod_asking("old", {.cpu = "3500m", .memory = "7Gi"}))};
  const Admission admission = admit(pod_asking("new", {.cpu = "501m", .memory = "2Gi"}), node);
  EXPECT_FALSE(admission.admitted);
  EXPECT_EQ(reasons(admission.refusals), (Lines{"OutOfcpu", "OutOfmemory"}));
  EXPECT_EQ(messages(admission),
            (Lines{"Node didn't have enough resource: cpu, requested: 501, used: 3500, capacity: "
                   "4000",
                   "Node didn't have enough resource: memory, requested: 2147483648, used: "
                   "7516192768, capacity: 8589934592"}));
}

TEST(AdmissionByFit, CountsOnlyRequestedResources) {
  struct Case {
    const char* says;
    std::function<void(Pod&, NodeState&)> set;
    Lines refused;
  };
  for (const Case& c : {
           Case{"exactly_all_that_is_left",
                [](Pod&pod, NodeState&node) {
                  node.pods = {on_node(pod_asking("old", {.cpu = "3"}))};
                  pod = pod_asking("new", {.cpu = "1"});
                },
                {}},
           Case{"overhead_counts",
                [](Pod&pod, NodeState&) {
                  pod = pod_asking("new", {.cpu = "4"});
                  pod.overhead.emplace("cpu", quantity("1m"));
                },
                {"OutOfcpu"}},
           Case{"overhead_of_others_counts",
                [](Pod&pod, NodeState&node) {
                  Pod old = pod_asking("old", {.cpu = "3"});
                  old.overhead.emplace("cpu", quantity("1"));
                  node.pods = {on_node(old)};
                  pod = pod_asking("new", {.cpu = "1m"});
                },
                {"OutOfcpu"}},
           Case{"nothing_asked_of_what_is_overcommitted",
                [](Pod&pod, NodeState&node) {
                  node.pods = {on_node(pod_asking("old", {.cpu = "9"}))};
                  pod = pod_asking("new", {.memory = "1Gi"});
                },
                {}},
           Case{"too_many_pods",
                [](Pod&, NodeState&node) {
                  node.allocatable["pods"] = 1;
                  node.pods = {on_node(pod_asking("old"))};
                },
                {"OutOfpods"}},
           Case{"itself_does_not_count",
                [](Pod&pod, NodeState&node) {
                  node.allocatable["pods"] = 1;
                  pod = pod_asking("new", {.cpu = "4"});
                  node.pods = {on_node(pod)};
                },
                {}},
           Case{"ephemeral_storage",
                [](Pod&pod, NodeState&) {
                  pod.containers[0].requests.emplace("ephemeral-storage", quantity("101Gi"));
                },
                {"OutOfephemeral-storage"}},
           Case{"huge_pages_a_node_has_not_got",
                [](Pod&pod, NodeState&) {
                  pod.containers[0].requests.emplace("hugepages-2Mi", quantity("2Mi"));
                },
                {"OutOfhugepages-2Mi"}},
           Case{"an_extended_resource_it_knows",
                [](Pod&pod, NodeState&node) {
                  node.allocatable["nvidia.com/gpu"] = 1;
                  pod.containers[0].requests.emplace("nvidia.com/gpu", quantity("2"));
                },
                {"OutOfnvidia.com/gpu"}},
           Case{"an_extended_resource_it_does_not_know",
                [](Pod&pod, NodeState&) {
                  pod.containers[0].requests.emplace("nvidia.com/gpu", quantity("2"));
                },
                {}},
           Case{"a_capacity_that_is_not_known",
                [](Pod&pod, NodeState&node) {
                  node.allocatable.erase("memory");
                  pod = pod_asking("new", {.memory = "1"});
                },
                {"Unknownmemory"}},
           Case{"sums_that_would_wrap",
                [](Pod&pod, NodeState&node) {
                  node.pods = {on_node(pod_asking("old", {.memory = "8E"}))};
                  pod = pod_asking("new", {.memory = "8E"});
                },
                {"OutOfmemory"}},
       }) {
    Pod pod = pod_asking("new");
    NodeState node = node_named("n");
    c.set(pod, node);
    const Admission admission = admit(pod, node);
    EXPECT_EQ(reasons(admission.refusals), c.refused) << c.says;
    EXPECT_EQ(admission.admitted, c.refused.empty()) << c.says;
  }
}

TEST(AdmissionByNodeMatch, ChecksNameLabelsAndPorts) {
  struct Case {
    const char* says;
    std::function<void(Placement&)> set;
    Lines refused;
  };
  const auto term = [](LabelRequirement requirement) {
    return std::vector<NodeTerm>{{{std::move(requirement)}, {}}};
  };
  for (const Case& c : {
           Case{"its_name", [](Placement& p) { p.node_name = "n"; }, {}},
           Case{"another_name", [](Placement& p) { p.node_name = "m"; }, {"NodeName"}},
           Case{"its_label",
                [](Placement& p) {
                  p.node_selector = {{"disk", "ssd"}};
                },
                {}},
           Case{"another_value",
                [](Placement& p) {
                  p.node_selector = {{"disk", "hdd"}};
                },
                {"NodeAffinity"}},
           Case{"a_label_it_has_not",
                [](Placement& p) {
                  p.node_selector = {{"gpu", ""}};
                },
                {"NodeAffinity"}},
           Case{"in",
                [&](Placement& p) {
                  p.required = term({"disk", Operator::kIn, {"hdd", "ssd"}});
                },
                {}},
           Case{"not_in",
                [&](Placement& p) {
                  p.required = term({"disk", Operator::kNotIn, {"ssd"}});
                },
                {"NodeAffinity"}},
           Case{"not_in_without_the_label",
                [&](Placement& p) {
                  p.required = term({"gpu", Operator::kNotIn, {"a"}});
                },
                {}},
           Case{"exists",
                [&](Placement& p) {
                  p.required = term({"disk", Operator::kExists});
                },
                {}},
           Case{"does_not_exist",
                [&](Placement& p) {
                  p.required = term({"disk", Operator::kDoesNotExist});
                },
                {"NodeAffinity"}},
           Case{"greater",
                [&](Placement& p) {
                  p.required = term({"cores", Operator::kGt, {"7"}});
                },
                {}},
           Case{"not_greater_than_itself",
                [&](Placement& p) {
                  p.required = term({"cores", Operator::kGt, {"8"}});
                },
                {"NodeAffinity"}},
           Case{"less",
                [&](Placement& p) {
                  p.required = term({"cores", Operator::kLt, {"9"}});
                },
                {}},
           Case{"less_of_no_number",
                [&](Placement& p) {
                  p.required = term({"disk", Operator::kLt, {"9"}});
                },
                {"NodeAffinity"}},
           Case{"any_term_will_do",
                [](Placement& p) {
                  p.required = {{{{"disk", Operator::kIn, {"hdd"}}}, {}},
                                {{{"disk", Operator::kIn, {"ssd"}}}, {}}};
                },
                {}},
           Case{"all_of_a_term_must_hold",
                [](Placement& p) {
                  p.required = {{{{"disk", Operator::kExists}, {"gpu", Operator::kExists}}, {}}};
                },
                {"NodeAffinity"}},
           Case{"an_empty_term_holds_nowhere",
                [](Placement& p) { p.required = {NodeTerm{}}; },
                {"NodeAffinity"}},
           Case{"no_term_at_all", [](Placement& p) { p.required.emplace(); }, {"NodeAffinity"}},
           Case{"by_field",
                [](Placement& p) {
                  p.required = {{{}, {{"metadata.name", Operator::kIn, {"n"}}}}};
                },
                {}},
           Case{"preferences_refuse_nobody",
                [](Placement& p) {
                  p.preferred = {{100, {{{"gpu", Operator::kExists}}, {}}}};
                },
                {}},
           Case{"a_free_port", [](Placement& p) { p.host_ports = {{.port = 81}}; }, {}},
           Case{"a_port_that_is_taken",
                [](Placement& p) { p.host_ports = {{.port = 80}}; },
                {"NodePorts"}},
       }) {
    NodeState node = node_named("n");
    node.labels = {{"disk", "ssd"}, {"cores", "8"}};
    Pod web = pod_asking("web");
    web.placement.host_ports = {{.port = 80}};
    node.pods = {on_node(web)};
    Pod pod = pod_asking("new");
    c.set(pod.placement);
    EXPECT_EQ(reasons(admit(pod, node).refusals), c.refused) << c.says;
  }
}

TEST(AdmissionByNodeMatch, PortsConflictByNumberProtocolAndAddress) {
  using enum HostPort::Protocol;
  struct Case {
    const char* says;
    HostPort a, b;
    bool conflict;
  };
  for (const Case& c : {Case{"same", {80, kTcp, "10.0.0.1"}, {80, kTcp, "10.0.0.1"}, true},
                        Case{"number", {80, kTcp, ""}, {81, kTcp, ""}, false},
                        Case{"protocol", {80, kTcp, ""}, {80, kUdp, ""}, false},
                        Case{"address", {80, kTcp, "10.0.0.1"}, {80, kTcp, "10.0.0.2"}, false},
                        Case{"everywhere", {80, kTcp, "10.0.0.1"}, {80, kTcp, ""}, true},
                        Case{"zeroes", {80, kTcp, "0.0.0.0"}, {80, kTcp, "10.0.0.2"}, true}}) {
    EXPECT_EQ(conflict(c.a, c.b), c.conflict) << c.says;
    EXPECT_EQ(conflict(c.b, c.a), c.conflict) << c.says;
  }
}

TEST(AdmissionByTaint, OperatorTaintsRejectPodsAndPreferencesAreReported) {
  NodeState node = node_named("n");
  node.taints = {{"a", "1", TaintEffect::kNoSchedule},
                 {"b", "", TaintEffect::kPreferNoSchedule},
                 {"c", "", TaintEffect::kNoExecute}};
  Pod pod = pod_asking("new");
  const Admission refused = admit(pod, node);
  EXPECT_EQ(messages(refused),
            (Lines{"Predicate TaintToleration failed: node(s) had taints that the pod didn't "
                   "tolerate: a=1:NoSchedule",
                   "Predicate TaintToleration failed: node(s) had taints that the pod didn't "
                   "tolerate: c:NoExecute"}));
  EXPECT_EQ(refused.refusals[0].by, RefusedBy::kScheduler);
  EXPECT_EQ(refused.refusals[1].by, RefusedBy::kKubelet);
  EXPECT_EQ(refused.untolerated_preferred, std::vector<Taint>{node.taints[1]});
  pod.placement.tolerations = {{.key = "a", .value = "1"},
                               {.key = "c", .op = Toleration::Operator::kExists}};
  EXPECT_TRUE(admit(pod, node).admitted) << "a preference does not refuse";
  pod.placement.tolerations.clear();
  pod.is_static = true;
  EXPECT_TRUE(admit(pod, node).admitted) << "static pods are not asked";
}

TEST(Admission, ReportsEveryReasonAtOnce) {
  NodeState node = node_named("n");
  node.conditions = {false, true, false};
  node.taints = {{"a", "", TaintEffect::kNoSchedule}};
  Pod pod = pod_asking("new", {.cpu = "5", .memory = "9Gi"});
  pod.placement.node_name = "m";
  pod.placement.node_selector = {{"gpu", "yes"}};
  EXPECT_EQ(
      reasons(admit(pod, node).refusals),
      (Lines{"Evicted", "OutOfcpu", "OutOfmemory", "NodeAffinity", "NodeName", "TaintToleration"}));
}

Pod critical(Asks asks) {
  asks.priority = kSystemCriticalPriority;
  return pod_asking("critical", asks);
}

TEST(Preemption, PreemptsTheLowestQosClassFirstAndTheClosestFit) {
  struct Case {
    const char* says;
    Pod pod;
    std::vector<Pod> running;
    Lines preempted;  // empty: refused
  };
  for (const Case& c : {
           Case{"of_all_that_would_do_the_smallest",
                critical({.cpu = "1"}),
                {pod_asking("large", {.cpu = "2"}), pod_asking("right", {.cpu = "1"}),
                 pod_asking("small", {.cpu = "1m"})},
                {"small"}},
           Case{"guaranteed_only_if_all_others_do_not_do",
                critical({.cpu = "2"}),
                {pod_asking("guaranteed", {.cpu = "2", .memory = "1Gi"}, true),
                 pod_asking("burstable", {.cpu = "2"})},
                {"burstable"}},
           Case{"guaranteed_for_the_rest",
                critical({.cpu = "3"}),
                {pod_asking("guaranteed", {.cpu = "3", .memory = "1Gi"}, true),
                 pod_asking("burstable", {.cpu = "1"})},
                {"guaranteed"}},
           Case{"both_if_both_are_needed",
                critical({.cpu = "4"}),
                {pod_asking("guaranteed", {.cpu = "3", .memory = "1Gi"}, true),
                 pod_asking("burstable", {.cpu = "1"})},
                {"guaranteed", "burstable"}},
           Case{"others_that_are_critical_stay",
                critical({.cpu = "4"}),
                {pod_asking("peer", {.cpu = "1", .priority = kSystemCriticalPriority})},
                {}},
           Case{"not_even_all_of_them_would_do",
                critical({.cpu = "5"}),
                {pod_asking("small", {.cpu = "1"})},
                {}},
           Case{"whoever_is_not_critical_preempts_nobody",
                pod_asking("plain", {.cpu = "4"}),
                {pod_asking("small", {.cpu = "1"})},
                {}},
           Case{"one_near_enough_before_two",
                critical({.cpu = "2"}),
                {pod_asking("one", {.cpu = "1"}), pod_asking("two", {.cpu = "2"}),
                 pod_asking("other", {.cpu = "1"})},
                {"two"}},
       }) {
    NodeState node = node_named("n");
    for (const Pod& pod : c.running)
      node.pods.push_back(on_node(pod));
    const Admission admission = admit(c.pod, node);
    EXPECT_EQ(preempted(admission, node), c.preempted) << c.says;
    EXPECT_EQ(admission.admitted, !c.preempted.empty()) << c.says;
    EXPECT_NE(admission.refusals.empty(), c.preempted.empty()) << c.says;
  }
}

TEST(Preemption, FreesAPodSlot) {
  NodeState node = node_named("n");
  node.allocatable["pods"] = 2;
  node.pods = {on_node(pod_asking("big", {.memory = "2Gi"})), on_node(pod_asking("idle"))};
  EXPECT_EQ(preempted(admit(critical({}), node), node), Lines{"idle"});
}

TEST(Preemption, HelpsAgainstShortagesOnly) {
  NodeState node = node_named("n");
  node.pods = {on_node(pod_asking("big", {.cpu = "4"}))};
  Pod pod = critical({.cpu = "1"});
  pod.placement.node_name = "m";
  const Admission admission = admit(pod, node);
  EXPECT_EQ(reasons(admission.refusals), (Lines{"OutOfcpu", "NodeName"}));
  EXPECT_TRUE(admission.preempted.empty());
}

// A node and its pods drawn from few values, so that everything ties and runs out often.
struct Drawn {
  NodeState node = node_named("n");
  std::mt19937& random;

  explicit Drawn(std::mt19937& source) : random(source) {
    for (auto& [resource, amount] : node.allocatable)
      amount = resource == "pods" ? draw(12) : resource == "cpu" ? draw(8) * 500 : draw(8) << 29;
    while (draw(10) > 0) {
      const PodOnNode pod = on_node(any("p" + std::to_string(node.pods.size())));
      node.pods.push_back(pod);
    }
  }
  std::int64_t draw(std::int64_t below) {
    return std::uniform_int_distribution<std::int64_t>(0, below - 1)(random);
  }
  Pod any(const std::string& name) {
    Pod pod = pod_asking(name);
    auto& requests = pod.containers[0].requests;
    if (draw(3) > 0) requests.emplace("cpu", Quantity::of_milli(draw(6) * 250));
    if (draw(3) > 0) requests.emplace("memory", Quantity::of(draw(6) << 28));
    if (draw(3) == 0) pod.containers[0].limits = requests;
    if (draw(4) == 0) pod.overhead.emplace("cpu", Quantity::of_milli(draw(3) * 10));
    if (draw(5) == 0) pod.priority = kSystemCriticalPriority;
    return pod;
  }
};

bool within_allocatable(const NodeState& node, const PodOnNode& pod,
                        const std::vector<std::size_t>& without) {
  NodeState after = node;
  after.pods.clear();
  for (std::size_t i = 0; i < node.pods.size(); ++i)
    if (std::find(without.begin(), without.end(), i) == without.end())
      after.pods.push_back(node.pods[i]);
  ResourceCounts sum = requested(after);
  add(sum, pod.requests);
  ++sum["pods"];
  for (const auto& [resource, count] : sum) {
    const bool asked = resource == "pods" || of(pod.requests, resource) > 0;
    if (asked && count > of(node.allocatable, resource)) return false;
  }
  return true;
}

TEST(AdmissionProperty, NeverExceedsAllocatableAndRejectsOnlyWithAReason) {
  std::mt19937 random(20261121);
  int admitted = 0, preempting = 0;
  for (int round = 0; round < 3000; ++round) {
    Drawn drawn(random);
    const Pod pod = drawn.any("new");
    const Admission admission = admit(pod, drawn.node);
    const PodOnNode wanted = on_node(pod);
    const bool fits = within_allocatable(drawn.node, wanted, {});
    if (admission.admitted) {
      ++admitted;
      preempting += admission.preempted.empty() ? 0 : 1;
      ASSERT_TRUE(within_allocatable(drawn.node, wanted, admission.preempted)) << round;
      ASSERT_EQ(fits, admission.preempted.empty()) << round << ": nothing is preempted needlessly";
    } else {
      ASSERT_FALSE(fits) << round;
    }
  }
  EXPECT_GT(admitted, 300);
  EXPECT_GT(preempting, 30);
}

TEST(PreemptionProperty, FreesEnoughAndPreemptsNoPodNeedlessly) {
  std::mt19937 random(7);
  int seen = 0;
  for (int round = 0; round < 6000; ++round) {
    Drawn drawn(random);
    Pod pod = drawn.any("new");
    pod.priority = kSystemCriticalPriority;
    const Admission admission = admit(pod, drawn.node);
    const PodOnNode wanted = on_node(pod);
    std::vector<std::size_t> all, not_guaranteed;
    for (std::size_t i = 0; i < drawn.node.pods.size(); ++i) {
      if (drawn.node.pods[i].critical) continue;
      all.push_back(i);
      if (drawn.node.pods[i].qos != QosClass::kGuaranteed) not_guaranteed.push_back(i);
    }
    ASSERT_EQ(admission.admitted, within_allocatable(drawn.node, wanted, all)) << round;
    const bool without_guaranteed = within_allocatable(drawn.node, wanted, not_guaranteed);
    for (const std::size_t index : admission.preempted) {
      ++seen;
      ASSERT_FALSE(drawn.node.pods[index].critical) << round;
      ASSERT_FALSE(without_guaranteed && drawn.node.pods[index].qos == QosClass::kGuaranteed)
          << round;
    }
    // The last of the last class was chosen because something was still missing.
    if (!admission.preempted.empty()) {
      auto fewer = admission.preempted;
      fewer.pop_back();
      ASSERT_FALSE(within_allocatable(drawn.node, wanted, fewer)) << round;
    }
  }
  EXPECT_GT(seen, 300);
}

}  // namespace
}  // namespace headroom
