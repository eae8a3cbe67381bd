// SPDX-License-Identifier: Apache-2.0
#include "ctl/status/kubernetes_lines.h"

#include "base/json_text.h"
#include "ctl/common/json_fields.h"
#include "ctl/common/text_table.h"

#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

std::string amount(const nlohmann::json& number) {
  const auto known = integer(number);
  return known ? std::to_string(*known) : "?";
}

}  // namespace

std::string api_line(std::string_view document) {
  const nlohmann::json status =
      nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json& api = at(status, {"kubernetes", "api"});
  if (!api.is_object()) return "";
  std::string line = "API:      ";
  if (at(api, {"server"}).is_string())
    line += fmt::format("{}  {} evictions reported", text(at(api, {"server"})),
                        amount(at(api, {"reported"})));
  const auto waiting = integer(at(api, {"pending"})).value_or(0);
  if (waiting > 0)
    line += fmt::format(", {} waiting since {}", waiting, text(at(api, {"oldestPendingSince"})));
  for (const char* key : {"error", "auditLogError"})
    if (at(api, {key}).is_string()) line += (line.back() == ' ' ? "" : "; ") + text(at(api, {key}));
  return line + '\n';
}

std::string scheduling_line(std::string_view document) {
  const nlohmann::json status =
      nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json& scheduling = at(status, {"kubernetes", "scheduling"});
  if (!scheduling.is_object()) return "";
  std::string reasons;
  for (const auto& [key, reason] :
       {std::pair{"HeadroomMemoryContention", "memory contention"},
        std::pair{"HeadroomCPUContention", "CPU contention"},
        std::pair{"HeadroomShortageExpected", "a shortage is expected"}})
    if (at(scheduling, {"advice", key}) == true)
      reasons += (reasons.empty() ? "" : ", ") + std::string(reason);
  std::string line = "scheduler: " + (reasons.empty() ? "no advice against this node"
                                                      : "advised against: " + reasons);
  for (const char* key : {"error", "headroomdError"})
    if (at(scheduling, {key}).is_string()) line += "; " + text(at(scheduling, {key}));
  return line + '\n';
}

std::string metrics_line(std::string_view document) {
  const nlohmann::json status =
      nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json& metrics = at(status, {"kubernetes", "metrics"});
  if (!metrics.is_object()) return "";
  std::string line = fmt::format("metrics:  https://{}/metrics  certificate: {}",
                                 text(at(metrics, {"listen"})), text(at(metrics, {"certificate"})));
  if (at(metrics, {"error"}).is_string()) line += "; " + text(at(metrics, {"error"}));
  return line + '\n';
}

namespace {

// headroom-kube polls the kubelet every periodSeconds (10 by default). After three missed polls and
// ten more seconds it is regarded as not running.
bool is_stale(const nlohmann::json& kubelet, std::int64_t age) {
  constexpr double kMissedPolls = 3, kDefaultPeriod = 10;
  const nlohmann::json& period = at(kubelet, {"periodSeconds"});
  return static_cast<double>(age) >
         kMissedPolls * (period.is_number() ? period.get<double>() : kDefaultPeriod) +
             kDefaultPeriod;
}

}  // namespace

std::string kubelet_line(std::string_view document, std::int64_t now) {
  const nlohmann::json status =
      nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json& kubelet = at(status, {"kubernetes", "kubelet"});
  if (!kubelet.is_object()) return "";
  const auto string_field = [&](const char* name) {
    const nlohmann::json& value = at(kubelet, {name});
    return value.is_string() ? printable(value.get<std::string>()) : std::string();
  };
  std::string line = "kubelet:  " + string_field("url");
  const std::int64_t pods_at = integer(at(kubelet, {"podsAt"})).value_or(0);
  const std::int64_t age = pods_at > 0 ? now - pods_at : 0;
  if (pods_at > 0)
    line += fmt::format("  {} pods, {} ago", to_json_text(at(kubelet, {"pods"})),
                        seconds(static_cast<double>(age)));
  else
    line += "  no answer yet";
  if (at(kubelet, {"lastPollSucceeded"}) != true)
    line += "; " + string_field("error");
  else if (pods_at > 0 && is_stale(kubelet, age))
    line += "; no query since: is headroom-kube running?";
  return line + '\n';
}

}  // namespace headroom::ctl
