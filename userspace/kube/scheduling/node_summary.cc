// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/node_summary.h"

#include "base/json_text.h"
#include "kube/api/api_response.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxSignalName = 40;

// Two decimals: the text has no more of a number.
double rounded(double share) {
  return std::round(std::clamp(share, 0.0, 1.0) * 100) / 100;
}

std::optional<double> share_at(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return rounded(found->get<double>());
}

// In hundredths, as the text has them: 0.15 - 0.10 is less than 0.05. 0: one of them is unknown.
double difference(std::optional<double> from, std::optional<double> to) {
  return from && to ? std::round((*to - *from) * 100) : 0;
}

bool is_step(std::optional<double> from, std::optional<double> to) {
  return std::abs(difference(from, to)) >= kSummaryStep * 100;
}

bool is_rise(std::optional<double> from, std::optional<double> to) {
  return difference(from, to) >= kSummaryRise * 100;
}

bool is_worse(const NodeSummary& from, const NodeSummary& to) {
  return (from.hard_threshold != to.hard_threshold && !to.hard_threshold.empty()) ||
         (!from.shortage_expected.value_or(false) && to.shortage_expected.value_or(false)) ||
         is_rise(from.cpu_contention, to.cpu_contention) ||
         is_rise(from.memory_contention, to.memory_contention);
}

}  // namespace

std::string as_text(const NodeSummary& summary) {
  Json json{{"time", rfc3339(summary.time)}};
  if (summary.cpu_contention) json["cpuContention"] = rounded(*summary.cpu_contention);
  if (summary.memory_contention) json["memoryContention"] = rounded(*summary.memory_contention);
  if (summary.memory_left) json["memoryLeft"] = rounded(*summary.memory_left);
  if (summary.shortage_expected) json["shortageExpected"] = *summary.shortage_expected;
  if (!summary.hard_threshold.empty())
    json["hardThreshold"] = summary.hard_threshold.substr(0, kMaxSignalName);
  return to_json_text(json);
}

Result<NodeSummary> node_summary_of(const std::string& text) {
  if (text.size() > kMaxSummaryBytes) return failure("the summary is too long");
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto time = parse_rfc3339(text_at(json, "time"));
  if (!time) return failure("the summary has no time");
  NodeSummary summary{.time = *time};
  summary.cpu_contention = share_at(json, "cpuContention");
  summary.memory_contention = share_at(json, "memoryContention");
  summary.memory_left = share_at(json, "memoryLeft");
  if (const auto found = json.find("shortageExpected"); found != json.end() && found->is_boolean())
    summary.shortage_expected = found->get<bool>();
  summary.hard_threshold = text_at(json, "hardThreshold");
  return summary;
}

SummaryChange change_of(const NodeSummary& from, const NodeSummary& to) {
  if (is_worse(from, to)) return SummaryChange::kWorse;
  const auto known = [](const NodeSummary& each) {
    return std::array{each.cpu_contention.has_value(), each.memory_contention.has_value(),
                      each.memory_left.has_value()};
  };
  if (from.hard_threshold != to.hard_threshold || from.shortage_expected != to.shortage_expected ||
      known(from) != known(to))
    return SummaryChange::kFacts;
  const bool numbers = is_step(from.cpu_contention, to.cpu_contention) ||
                       is_step(from.memory_contention, to.memory_contention) ||
                       is_step(from.memory_left, to.memory_left);
  return numbers ? SummaryChange::kNumbers : SummaryChange::kNone;
}

}  // namespace headroom::kube
