// SPDX-License-Identifier: Apache-2.0
// Taint and Toleration, as in the Kubernetes API (core/v1).
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace headroom {

enum class TaintEffect : std::uint8_t {
  kNoSchedule,        // new pods are not scheduled here
  kPreferNoSchedule,  // new pods are scheduled elsewhere if possible
  kNoExecute,         // running pods are evicted as well
};
inline constexpr std::array<std::string_view, 3> kTaintEffectNames{"NoSchedule", "PreferNoSchedule",
                                                                   "NoExecute"};
constexpr std::string_view name(TaintEffect effect) {
  return kTaintEffectNames[static_cast<std::size_t>(effect)];
}
// Exact and case-sensitive, as in the API server.
constexpr std::optional<TaintEffect> taint_effect_named(std::string_view text) {
  for (std::size_t i = 0; i < kTaintEffectNames.size(); ++i)
    if (kTaintEffectNames[i] == text) return static_cast<TaintEffect>(i);
  return std::nullopt;
}

// A node has at most one taint of each key and effect.
struct Taint {
  std::string key;
  std::string value{};
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// "dedicated=gpu:NoExecute"; "dedicated:NoExecute" without a value.
inline std::string to_string(const Taint& taint) {
  std::string text = taint.key;
  if (!taint.value.empty()) text.append("=").append(taint.value);
  return text.append(":").append(name(taint.effect));
}

// The integers that Gt and Lt compare: decimal digits of an int64, without a plus sign or leading
// zeros; "-0" is not valid.
inline std::optional<std::int64_t> toleration_integer(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  const bool negative = text.front() == '-';
  const char first = text[negative ? 1 : 0];
  if (first == '0' && text.size() > 1) return std::nullopt;
  return value;
}

struct Toleration {
  // How the taint's value is compared with `value`. kGt and kLt (Kubernetes 1.35) compare integers:
  // the taint's value is greater, or less. kUnknown: the toleration could not be parsed, so what it
  // tolerates is unknown.
  enum class Operator : std::uint8_t {  // recorded: add new values at the end
    kEqual,
    kExists,
    kGt,
    kLt,
    kUnknown,
  };
  std::string key{};  // empty (with kExists): every key
  std::string value{};
  Operator op = Operator::kEqual;
  std::optional<TaintEffect> effect{};  // absent: every effect
  // tolerationSeconds: how long a NoExecute taint is tolerated; absent: without limit.
  std::optional<std::chrono::seconds> seconds{};
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

}  // namespace headroom
