// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/node_signals.h"

#include "base/json_text.h"
#include "base/state/json_integer.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

const nlohmann::json& part(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

std::optional<double> number(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = part(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<double> share(const nlohmann::json& object, const char* key) {
  const auto value = number(object, key);
  return value ? std::optional(std::clamp(*value, 0.0, 1.0)) : std::nullopt;
}

std::optional<Bytes> bytes(const nlohmann::json& object, const char* key) {
  const auto count = whole_number_of(part(object, key));
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::optional<MilliCpu> milli(const nlohmann::json& object, const char* key) {
  const auto count = whole_number_of(part(object, key));
  return count ? std::optional(MilliCpu{*count}) : std::nullopt;
}

std::optional<Duration> seconds(const nlohmann::json& object, const char* key) {
  constexpr double kLongest = 1e9;  // more does not fit into a Duration
  const auto value = number(object, key);
  if (!value) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(*value, 0.0, kLongest)));
}

}  // namespace

Result<NodeSignals> signals_of(const std::string& json, Instant now) {
  const nlohmann::json document = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto at = whole_number_of(part(document, "at_ns"));
  if (!at) return failure("headroomd's answer has no time");
  if (Instant(Duration(*at)) < now - kMaxSignalsAge)
    return failure("headroomd's readings are too old");
  NodeSignals signals;
  const nlohmann::json& contention = part(document, "contention");
  signals.memory_contention = share(contention, "memory");
  signals.cpu_contention = share(contention, "cpu");
  if (const std::string met = text_at(document, "hard_threshold"); !met.empty())
    signals.hard_threshold = met;
  signals.shortage_in = seconds(document, "shortage_seconds");
  const nlohmann::json& memory = part(document, "memory");
  signals.memory_capacity = bytes(memory, "capacity");
  signals.memory_left = bytes(memory, "left");
  signals.memory_growth = bytes(memory, "growth");
  signals.batch_memory = bytes(memory, "batch");
  const nlohmann::json& cpu = part(document, "cpu");
  signals.cpu_capacity = milli(cpu, "capacity_milli");
  signals.cpu_used = milli(cpu, "used_milli");
  return signals;
}

}  // namespace headroom::kube
