// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/pod_admission.h"

#include "judge/admission/scheduler.h"
#include "judge/admission/taints.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace headroom {
namespace {

using Indices = std::vector<std::size_t>;

std::int64_t freed_by(const PodOnNode& pod, std::string_view resource) {
  return resource == "pods" ? 1 : of(pod.requests, resource);
}

// The resources that are still missing, with the amounts; at least one.
class MissingResources {
 public:
  MissingResources(const NodeState& node, std::span<const Shortage> shortages) : node_(&node) {
    for (const Shortage& shortage : shortages)
      left_.emplace_back(shortage.resource,
                         shortage.missing().value_or(std::numeric_limits<std::int64_t>::max()));
  }

  bool met() const { return left_.empty(); }

  MissingResources without(const Indices& pods) const {
    MissingResources missing = *this;
    for (const std::size_t pod : pods)
      for (auto& [resource, left] : missing.left_)
        left -= std::min(left, freed_by(node_->pods[pod], resource));
    std::erase_if(missing.left_, [](const auto& entry) { return entry.second <= 0; });
    return missing;
  }

  // 0: this pod is sufficient; 1 for each resource of which it releases nothing.
  double distance(std::size_t pod) const {
    double sum = 0;
    for (const auto& [resource, left] : left_) {
      const auto rest = static_cast<double>(left - freed_by(node_->pods[pod], resource));
      if (rest > 0) sum += (rest / static_cast<double>(left)) * (rest / static_cast<double>(left));
    }
    return sum;
  }

 private:
  const NodeState* node_;
  std::vector<std::pair<std::string, std::int64_t>> left_;
};

bool smaller(const PodOnNode& a, const PodOnNode& b) {
  for (const std::string_view resource : {"memory", "cpu"})
    if (of(a.requests, resource) != of(b.requests, resource))
      return of(a.requests, resource) < of(b.requests, resource);
  return false;
}

// Chooses the nearest pod repeatedly until nothing is missing. Among equals the smaller, then the
// first.
std::optional<Indices> nearest(const NodeState& node, Indices pods, MissingResources missing) {
  Indices chosen;
  while (!missing.met()) {
    if (pods.empty()) return std::nullopt;
    auto best = pods.begin();
    double least = missing.distance(*best);
    for (auto it = best + 1; it != pods.end(); ++it) {
      const double distance = missing.distance(*it);
      const bool nearer = distance < least;
      if (!nearer && !(distance == least && smaller(node.pods[*it], node.pods[*best]))) continue;
      best = it;
      least = distance;
    }
    chosen.push_back(*best);
    pods.erase(best);
    missing = missing.without({chosen.back()});
  }
  return chosen;
}

Indices joined(const Indices& a, const Indices& b) {
  Indices all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

struct PodsByQos {
  Indices guaranteed, burstable, best_effort;
};

PodsByQos preemptible_pods(const PodOnNode& pod, const NodeState& node) {
  PodsByQos classes;
  for (std::size_t i = 0; i < node.pods.size(); ++i) {
    const PodOnNode& other = node.pods[i];
    if ((!pod.uid.empty() && other.uid == pod.uid) || !may_preempt(pod, other)) continue;
    switch (other.qos) {
      case QosClass::kGuaranteed:
        classes.guaranteed.push_back(i);
        break;
      case QosClass::kBurstable:
        classes.burstable.push_back(i);
        break;
      case QosClass::kBestEffort:
        classes.best_effort.push_back(i);
        break;
    }
  }
  return classes;
}

}  // namespace

bool may_preempt(const PodOnNode& pod, const PodOnNode& other) {
  return (pod.critical && !other.critical) || pod.priority > other.priority;
}

std::optional<Indices> select_preemption_victims(const PodOnNode& pod, const NodeState& node,
                                                 std::span<const Shortage> shortages) {
  const MissingResources missing(node, shortages);
  const PodsByQos all = preemptible_pods(pod, node);
  const auto guaranteed =
      nearest(node, all.guaranteed, missing.without(joined(all.burstable, all.best_effort)));
  if (!guaranteed) return std::nullopt;
  const auto burstable =
      nearest(node, all.burstable, missing.without(joined(all.best_effort, *guaranteed)));
  if (!burstable) return std::nullopt;
  const auto best_effort =
      nearest(node, all.best_effort, missing.without(joined(*burstable, *guaranteed)));
  if (!best_effort) return std::nullopt;
  return joined(*guaranteed, joined(*burstable, *best_effort));
}

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
    // A kubelet checks only NoExecute.
    if (taint.effect == TaintEffect::kNoSchedule) failure.by = RefusedBy::kScheduler;
    admission.refusals.push_back(std::move(failure));
  }
}

// Preemption can free resources only.
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
    // The kubelet does not know CPUPressure: its taint alone keeps pods away.
    if (conditions[i] && static_cast<Condition>(i) != Condition::kCpuPressure)
      active_conditions.append(active_conditions.empty() ? "" : " ").append(kConditionNames[i]);
  if (active_conditions.empty() || is_critical(pod)) return std::nullopt;
  // BestEffort pods use memory without a request; the needs of all others are known.
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
