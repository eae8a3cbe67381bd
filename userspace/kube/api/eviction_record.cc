// SPDX-License-Identifier: Apache-2.0
#include "kube/api/eviction_record.h"

#include "base/json_text.h"

#include <time.h>

#include <string>

#include <spdlog/fmt/fmt.h>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;

// Versions up to 0.1 wrote "outlasting" for "timed_out".
bool died(const Json& line) {
  const std::string outcome = text_at(line, "outcome");
  return outcome == "evicted" || outcome == "timed_out" || outcome == "outlasting";
}

// Older versions wrote no unit: they evicted whole pods only.
bool whole_pod(const Json& line) {
  const std::string unit = text_at(line, "unit");
  return unit.empty() || unit == "pod";
}

EvictionRecord::Cause cause_of(const Json& line) {
  if (line.contains("taint")) return EvictionRecord::Cause::kTaint;
  return text_at(line, "kind") == "limit" ? EvictionRecord::Cause::kLimit
                                          : EvictionRecord::Cause::kThreshold;
}

// "2026-11-20T22:50:00.123456Z" → microseconds since 1970; absent if the text has another format.
std::optional<std::uint64_t> microseconds_of(const std::string& time) {
  std::tm utc{};
  const char* rest = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (!rest) return std::nullopt;
  std::uint64_t micros = 0, place = 100'000;
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, place /= 10)
      micros += static_cast<std::uint64_t>(*rest - '0') * place;
  if (std::string_view(rest) != "Z") return std::nullopt;
  return static_cast<std::uint64_t>(::timegm(&utc)) * 1'000'000 + micros;
}

}  // namespace

std::optional<EvictionRecord> parse_eviction(std::string_view text) {
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("pod") || !line["pod"].is_object()) return std::nullopt;
  if (!died(line) || !whole_pod(line)) return std::nullopt;
  const Json& pod = line["pod"];
  const std::string time = text_at(line, "time");
  const auto micros = microseconds_of(time);
  EvictionRecord evicted{.uid = text_at(pod, "uid"),
                         .name = text_at(pod, "name"),
                         .pod_namespace = text_at(pod, "namespace"),
                         .cause = cause_of(line),
                         .signal = text_at(line, "signal"),
                         .message = text_at(line, "message"),
                         .time = time.substr(0, 19) + "Z",
                         .stamp = micros ? fmt::format("{:016x}", *micros) : ""};
  if (evicted.uid.empty() || evicted.name.empty() || evicted.pod_namespace.empty() || !micros)
    return std::nullopt;
  return evicted;
}

}  // namespace headroom::kube
