// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/pod_admission.h"

#include "judge/admission/node_match.h"
#include "judge/admission/preemption.h"
#include "judge/admission/taints.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

AdmitFailure predicate(const char* name, const std::string& what) {
  return {name, "Predicate " + std::string(name) + " failed: " + what};
}

AdmitFailure refusal(Shortage shortage) {
  if (!shortage.capacity)
    return {"Unknown" + shortage.resource,
            "It is not known how much " + shortage.resource + " this node can give.",
            std::move(shortage)};
  std::string message = "Node didn't have enough resource: " + shortage.resource +
                        ", requested: " + std::to_string(shortage.requested) +
                        ", used: " + std::to_string(shortage.used) +
                        ", capacity: " + std::to_string(*shortage.capacity);
  return {"OutOf" + shortage.resource, std::move(message), std::move(shortage)};
}

void check_node_match(const Pod& pod, const PodOnNode& wanted, const NodeState& node,
                      Admission& admission) {
  const Placement& placement = pod.placement;
  auto& refusals = admission.refusals;
  if (!selects(placement, node))
    refusals.push_back(
        predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
  if (!placement.node_name.empty() && placement.node_name != node.name)
    refusals.push_back(predicate("NodeName", "node(s) didn't match the requested node name"));
  if (!ports_free(wanted, node))
    refusals.push_back(
        predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
}

void check_taints(const Pod& pod, const NodeState& node, Admission& admission) {
  if (pod.is_static) return;
  for (const Taint& taint : node.taints) {
    if (tolerates(pod, taint)) continue;
    if (taint.effect == TaintEffect::kPreferNoSchedule) {
      admission.untolerated_preferred.push_back(taint);
      continue;
    }
    AdmitFailure failure = predicate(
        "TaintToleration", "node(s) had taints that the pod didn't tolerate: " + to_string(taint));
    // A kubelet checks NoExecute alone.
    if (taint.effect == TaintEffect::kNoSchedule) failure.by = RefusedBy::kScheduler;
    admission.refusals.push_back(std::move(failure));
  }
}

// Only resources can be made by displacing others.
bool only_shortages(const std::vector<AdmitFailure>& refusals) {
  return !refusals.empty() &&
         std::all_of(refusals.begin(), refusals.end(),
                     [](const AdmitFailure& each) { return each.shortage.has_value(); });
}

void preempt(const PodOnNode& wanted, const NodeState& node, Admission& admission) {
  std::vector<Shortage> missing;
  for (const AdmitFailure& each : admission.refusals)
    missing.push_back(*each.shortage);
  auto victims = select_preemption_victims(wanted, node, missing);
  if (!victims) return;
  admission.preempted = std::move(*victims);
  admission.resolved_by_preemption = std::exchange(admission.refusals, {});
}

}  // namespace

std::optional<AdmitFailure> pressure_failure(const Pod& pod,
                                             const std::array<bool, kConditions>& conditions) {
  std::string active_conditions;
  for (std::size_t i = 0; i < kConditions; ++i)
    if (conditions[i])
      active_conditions.append(active_conditions.empty() ? "" : " ").append(kConditionNames[i]);
  if (active_conditions.empty() || is_critical(pod)) return std::nullopt;
  // BestEffort pods fill memory unasked; of all others it is known what they want.
  if (active_conditions == name(Condition::kMemoryPressure) &&
      (qos_class(pod) != QosClass::kBestEffort ||
       tolerates(pod, taint_of(Condition::kMemoryPressure))))
    return std::nullopt;
  return AdmitFailure{"Evicted", "The node had condition: [" + active_conditions + "]. "};
}

Admission admit(const Pod& pod, const NodeState& node) {
  Admission admission;
  if (auto pressure = pressure_failure(pod, node.conditions))
    admission.refusals.push_back(std::move(*pressure));
  const PodOnNode wanted = on_node(pod);
  for (Shortage& shortage : shortages(wanted, node, UnknownResources::kIgnoreUnknown))
    admission.refusals.push_back(refusal(std::move(shortage)));
  check_node_match(pod, wanted, node, admission);
  check_taints(pod, node, admission);
  if (wanted.critical && only_shortages(admission.refusals)) preempt(wanted, node, admission);
  admission.admitted = admission.refusals.empty();
  return admission;
}

}  // namespace headroom
