// SPDX-License-Identifier: Apache-2.0
// Taint and Toleration: what a node holds against pods, and what a pod puts up with.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

enum class TaintEffect : std::uint8_t {
  kNoSchedule,        // new pods stay away
  kPreferNoSchedule,  // new pods rather go elsewhere
  kNoExecute,         // running pods leave as well
};
inline constexpr std::array<std::string_view, 3> kTaintEffectNames{"NoSchedule", "PreferNoSchedule",
                                                                   "NoExecute"};
constexpr std::string_view name(TaintEffect effect) {
  return kTaintEffectNames[static_cast<std::size_t>(effect)];
}
// Exact and case-sensitive, as the API server has it.
constexpr std::optional<TaintEffect> taint_effect_named(std::string_view text) {
  for (std::size_t i = 0; i < kTaintEffectNames.size(); ++i)
    if (kTaintEffectNames[i] == text) return static_cast<TaintEffect>(i);
  return std::nullopt;
}

// A node has one of each key and effect.
struct Taint {
  std::string key;
  std::string value{};
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// "dedicated=gpu:NoExecute"; "dedicated:NoExecute" where there is no value.
inline std::string to_string(const Taint& taint) {
  std::string text = taint.key;
  if (!taint.value.empty()) text.append("=").append(taint.value);
  return text.append(":").append(name(taint.effect));
}

struct Toleration {
  std::string key{};  // empty (with `any_value`): every key
  std::string value{};
  bool any_value = false;               // operator Exists; else Equal
  std::optional<TaintEffect> effect{};  // absent: every effect
  // tolerationSeconds: how long a NoExecute taint is put up with; absent: for ever.
  std::optional<std::chrono::seconds> seconds{};
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

}  // namespace headroom
