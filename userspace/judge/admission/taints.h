// SPDX-License-Identifier: Apache-2.0
// Taints against tolerations: what a pod puts up with, and for how long (kubelet: lifecycle and
// preemption).
#pragma once

#include <headroom/pod.h>
#include <headroom/signal.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace headroom {

// Shared, so that a reason can refer to a taint without a copy.
using TaintRef = std::shared_ptr<const Taint>;

// An empty effect is every effect; an empty key, with Exists, every key. A toleration that could
// not be parsed tolerates nothing here, and every taint that it may be for in toleration_time().
bool tolerates(const Toleration& toleration, const Taint& taint);

// By what the pod says, or by what every pod of its kind is given: of memory pressure, all but
// BestEffort; a DaemonSet's, of pressure of any kind and of a node that is cordoned or not ready.
bool tolerates(const Pod& pod, const Taint& taint);

// How long a pod stays on a node with these taints; those without NoExecute do not count.
struct TolerationTime {
  enum class Kind : std::uint8_t { kForever, kFinite, kNone };
  Kind kind = Kind::kForever;
  Duration length{0};  // kFinite: more than zero
  TaintRef taint{};    // not forever: what ends it, first of all
};
TolerationTime toleration_time(const Pod& pod, std::span<const TaintRef> taints);

// "node.kubernetes.io/memory-pressure:NoSchedule" and its like.
const Taint& taint_of(Condition condition);
std::vector<Taint> condition_taints(const std::array<bool, kConditions>& conditions);

}  // namespace headroom
