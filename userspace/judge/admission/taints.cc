// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/taints.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr std::string_view kMemoryPressure = "node.kubernetes.io/memory-pressure";

struct DefaultToleration {
  std::string_view key;
  TaintEffect effect;
};

// What the DaemonSet controller adds to its pods (v1.32).
constexpr std::array<DefaultToleration, 6> kDaemonSetTolerations{{
    {"node.kubernetes.io/not-ready", TaintEffect::kNoExecute},
    {"node.kubernetes.io/unreachable", TaintEffect::kNoExecute},
    {"node.kubernetes.io/disk-pressure", TaintEffect::kNoSchedule},
    {kMemoryPressure, TaintEffect::kNoSchedule},
    {"node.kubernetes.io/pid-pressure", TaintEffect::kNoSchedule},
    {"node.kubernetes.io/unschedulable", TaintEffect::kNoSchedule},
}};

bool has_default_toleration(const Pod& pod, const Taint& taint) {
  if (taint.key == kMemoryPressure && taint.effect == TaintEffect::kNoSchedule &&
      qos_class(pod) != QosClass::kBestEffort)
    return true;
  return pod.placement.daemon_set &&
         std::any_of(kDaemonSetTolerations.begin(), kDaemonSetTolerations.end(),
                     [&](const DefaultToleration& known) {
                       return known.key == taint.key && known.effect == taint.effect;
                     });
}

// Gt and Lt: a value that is no integer tolerates nothing, on either side.
bool compares(Toleration::Operator op, std::string_view taint, std::string_view toleration) {
  const auto left = toleration_integer(taint), right = toleration_integer(toleration);
  if (!left || !right) return false;
  return op == Toleration::Operator::kGt ? *left > *right : *left < *right;
}

// Whether a toleration that could not be parsed may be for this taint.
bool may_tolerate(const Toleration& toleration, const Taint& taint) {
  return toleration.op == Toleration::Operator::kUnknown &&
         (toleration.key.empty() || toleration.key == taint.key) &&
         (!toleration.effect || *toleration.effect == taint.effect);
}

void add_toleration(const Toleration& toleration, const TaintRef& taint,
                    TolerationTime& toleration_time) {
  if (!toleration.seconds) return;
  if (*toleration.seconds <= std::chrono::seconds::zero()) {
    toleration_time = {.kind = TolerationTime::Kind::kNone, .length = {}, .taint = taint};
    return;
  }
  // Nanoseconds of an int64 end after 292 years: longer is as good as that.
  constexpr std::chrono::seconds kMax{9'000'000'000};
  const Duration length = std::min(*toleration.seconds, kMax);
  if (toleration_time.kind == TolerationTime::Kind::kFinite && toleration_time.length <= length)
    return;
  toleration_time = {.kind = TolerationTime::Kind::kFinite, .length = length, .taint = taint};
}

}  // namespace

bool tolerates(const Toleration& toleration, const Taint& taint) {
  if (toleration.effect && *toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  using Operator = Toleration::Operator;
  switch (toleration.op) {
    case Operator::kExists:
      return true;
    case Operator::kEqual:
      // Without a key it matches every key: the kubelet's rule. The API server lets none in, and it
      // is complained of where manifests are read.
      return toleration.value == taint.value;
    case Operator::kGt:
    case Operator::kLt:
      return compares(toleration.op, taint.value, toleration.value);
    case Operator::kUnknown:
      return false;  // for admission; a running pod is not evicted for it: toleration_time()
  }
  return false;
}

bool tolerates(const Pod& pod, const Taint& taint) {
  const auto& own = pod.placement.tolerations;
  return std::any_of(own.begin(), own.end(),
                     [&](const Toleration& toleration) { return tolerates(toleration, taint); }) ||
         has_default_toleration(pod, taint);
}

TolerationTime toleration_time(const Pod& pod, std::span<const TaintRef> taints) {
  TolerationTime toleration_time;
  for (const TaintRef& taint : taints) {
    if (taint->effect != TaintEffect::kNoExecute) continue;
    bool tolerated = has_default_toleration(pod, *taint);
    // Every toleration that matches has a say, and the shortest time wins.
    for (const Toleration& toleration : pod.placement.tolerations) {
      if (may_tolerate(toleration, *taint)) tolerated = true;  // what is unknown evicts no pod
      if (!tolerates(toleration, *taint)) continue;
      tolerated = true;
      add_toleration(toleration, taint, toleration_time);
      if (toleration_time.kind == TolerationTime::Kind::kNone) return toleration_time;
    }
    if (!tolerated) return {.kind = TolerationTime::Kind::kNone, .length = {}, .taint = taint};
  }
  return toleration_time;
}

const Taint& taint_of(Condition condition) {
  static const std::array<Taint, kConditions> kTaints{Taint{std::string(kMemoryPressure)},
                                                      Taint{"node.kubernetes.io/disk-pressure"},
                                                      Taint{"node.kubernetes.io/pid-pressure"}};
  return kTaints[static_cast<std::size_t>(condition)];
}

std::vector<Taint> condition_taints(const std::array<bool, kConditions>& conditions) {
  std::vector<Taint> taints;
  for (std::size_t i = 0; i < kConditions; ++i)
    if (conditions[i]) taints.push_back(taint_of(static_cast<Condition>(i)));
  return taints;
}

}  // namespace headroom
