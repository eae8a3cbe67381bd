// SPDX-License-Identifier: Apache-2.0
// Admission: whether a pod may start on this node, by the kubelet's rules (kubelet: eviction,
// lifecycle and preemption), with every reason if not.
//
// One rule is headroom's own: on a plain host no scheduler keeps pods off a node with NoSchedule
// taints, so the operator's taints are checked here; PreferNoSchedule is reported and does not
// refuse. The taints of conditions are not checked: under pressure the kubelet has rules of its
// own.
#pragma once

#include "judge/admission/node_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Preemption: which pods a critical pod displaces (kubelet: lifecycle and preemption).

// A critical pod may displace pods that are not critical, and any pod displaces those of lower
// priority.
bool may_preempt(const PodOnNode& pod, const PodOnNode& other);

// Indices into node.pods, in the order they were chosen: Guaranteed ones only for what all others
// together would not free, Burstable before BestEffort likewise; within a class always the pod
// nearest to what is still missing. Absent: all of them together are not sufficient.
std::optional<std::vector<std::size_t>> select_preemption_victims(
    const PodOnNode& pod, const NodeState& node, std::span<const Shortage> shortages);

// Which program of a cluster refuses a pod for this reason: the kubelet, or the scheduler, which
// then chooses another node.
enum class RefusedBy : std::uint8_t { kKubelet, kScheduler };
constexpr std::string_view name(RefusedBy by) {
  return by == RefusedBy::kKubelet ? "kubelet" : "scheduler";
}

struct AdmitFailure {
  std::string reason;   // as in a rejected pod's status: "OutOfcpu", "NodeAffinity", "Evicted"
  std::string message;  // the kubelet's
  std::optional<Shortage> shortage{};
  RefusedBy by = RefusedBy::kKubelet;
  friend bool operator==(const AdmitFailure&, const AdmitFailure&) = default;
};

struct Admission {
  bool admitted = false;
  std::vector<AdmitFailure> refusals;  // none, if admitted
  // Why a critical pod was refused before it preempts these pods: indices into node.pods.
  std::vector<AdmitFailure> resolved_by_preemption;
  std::vector<std::size_t> preempted;
  std::vector<Taint> untolerated_preferred;  // PreferNoSchedule taints it does not tolerate
};

Admission admit(const Pod& pod, const NodeState& node);

// Under pressure (1.12): the reason for refusing the pod; absent: it is not refused.
std::optional<AdmitFailure> pressure_failure(const Pod& pod,
                                             const std::array<bool, kConditions>& conditions);

}  // namespace headroom
