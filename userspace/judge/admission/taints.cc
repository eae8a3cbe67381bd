// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/taints.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr std::string_view kExpected =
    ": expected KEY=VALUE:EFFECT or KEY:EFFECT to add, KEY:EFFECT- or KEY- to remove, where EFFECT "
    "is NoSchedule, PreferNoSchedule or NoExecute";

bool alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Letters, digits, '-', '_' and '.', the first and the last of them a letter or a digit.
bool is_name(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  return !text.empty() && text.size() <= kMaxLength && alphanumeric(text.front()) &&
         alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

bool is_domain(std::string_view text) {
  constexpr std::size_t kMaxLength = 253;
  return !text.empty() && text.size() <= kMaxLength && alphanumeric(text.front()) &&
         alphanumeric(text.back()) && text.find("..") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (alphanumeric(c) && (c < 'A' || c > 'Z')) || c == '-' || c == '.';
         });
}

bool same_key_and_effect(const Taint& a, const Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

void put(std::vector<Taint>& taints, const Taint& taint) {
  const auto there = std::find_if(taints.begin(), taints.end(), [&](const Taint& old) {
    return same_key_and_effect(old, taint);
  });
  if (there == taints.end())
    taints.push_back(taint);
  else
    *there = taint;
}

std::string remove(std::vector<Taint>& taints, const TaintEdit& edit) {
  const auto removed = std::erase_if(taints, [&](const Taint& taint) {
    return taint.key == edit.key && (!edit.effect || taint.effect == *edit.effect);
  });
  if (removed > 0) return "";
  std::string what = edit.key;
  if (edit.effect) what.append(":").append(name(*edit.effect));
  return "taint \"" + what + "\" not found";
}

std::string add(std::vector<Taint>& taints, const TaintEdit& edit, bool overwrite) {
  const Taint taint{edit.key, edit.value, *edit.effect};
  for (const Taint& old : taints)
    if (same_key_and_effect(old, taint) && old != taint && !overwrite)
      return "the node already has " + to_string(old) + "; --overwrite replaces it";
  put(taints, taint);
  return "";
}

}  // namespace

Result<TaintEdit> parse_taint_edit(std::string_view text) {
  const auto syntax_error = [&] {
    return failure("\"" + std::string(text) + "\"" + std::string(kExpected));
  };
  std::string_view rest = text;
  TaintEdit edit;
  edit.removes = rest.ends_with('-');
  if (edit.removes) rest.remove_suffix(1);
  if (const auto colon = rest.rfind(':'); colon != std::string_view::npos) {
    edit.effect = taint_effect_named(rest.substr(colon + 1));
    if (!edit.effect) return syntax_error();
    rest = rest.substr(0, colon);
  } else if (!edit.removes) {
    return syntax_error();
  }
  const std::size_t equals = rest.find('=');
  edit.key = rest.substr(0, equals);
  if (equals != std::string_view::npos) edit.value = rest.substr(equals + 1);
  const std::string error_text = taint_error({edit.key, edit.value, TaintEffect::kNoSchedule});
  if (!error_text.empty()) return failure("\"" + std::string(text) + "\": " + error_text);
  return edit;
}

std::string taint_error(const Taint& taint) {
  const std::size_t slash = taint.key.find('/');
  const bool prefixed = slash != std::string::npos;
  const std::string_view key = taint.key;
  const std::string_view name = prefixed ? key.substr(slash + 1) : key;
  if ((prefixed && !is_domain(key.substr(0, slash))) || !is_name(name))
    return "the key \"" + taint.key +
           "\" must be a name such as dedicated or example.com/dedicated: up to 63 letters, "
           "digits, '-', '_' and '.', which begin and end with a letter or digit";
  if (!taint.value.empty() && !is_name(taint.value))
    return "the value \"" + taint.value +
           "\" must be up to 63 letters, digits, '-', '_' and '.', which begin and end with a "
           "letter or digit";
  return "";
}

TaintsOrErrors apply_taint_edits(std::vector<Taint> taints, std::span<const TaintEdit> edits,
                                 bool overwrite) {
  std::vector<std::string> errors;
  for (const TaintEdit& edit : edits) {
    std::string error = edit.removes ? remove(taints, edit) : add(taints, edit, overwrite);
    if (!error.empty()) errors.push_back(std::move(error));
  }
  if (!errors.empty()) return tl::make_unexpected(std::move(errors));
  return taints;
}

std::vector<Taint> reconcile_taints(std::vector<Taint> taints, std::span<const Taint> before,
                                    std::span<const Taint> now) {
  const auto has = [](std::span<const Taint> all, const Taint& taint) {
    return std::find(all.begin(), all.end(), taint) != all.end();
  };
  std::erase_if(taints, [&](const Taint& taint) { return has(before, taint) && !has(now, taint); });
  for (const Taint& taint : now)
    if (!has(before, taint)) put(taints, taint);
  return taints;
}

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
  // The limit of nanoseconds in an int64 is 292 years.
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
    // Of all matching tolerations the shortest time counts.
    for (const Toleration& toleration : pod.placement.tolerations) {
      if (may_tolerate(toleration, *taint))
        tolerated = true;  // an unknown toleration never evicts a pod
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
                                                      Taint{"node.kubernetes.io/pid-pressure"},
                                                      // Kubernetes has no such condition.
                                                      Taint{"headroom.io/cpu-pressure"}};
  return kTaints[static_cast<std::size_t>(condition)];
}

std::vector<Taint> condition_taints(const std::array<bool, kConditions>& conditions) {
  std::vector<Taint> taints;
  for (std::size_t i = 0; i < kConditions; ++i)
    if (conditions[i]) taints.push_back(taint_of(static_cast<Condition>(i)));
  return taints;
}

}  // namespace headroom
