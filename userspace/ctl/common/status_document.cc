// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/status_document.h"

#include "base/state/json_integer.h"

#include <headroom/waits.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

// The field, or null if it is missing: documents of other versions have more or fewer fields.
const nlohmann::json& at(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

std::string text(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}
std::optional<std::int64_t> integer(const nlohmann::json& object, const char* key) {
  return whole_number_of(at(object, key));
}
std::optional<double> number(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = at(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}
bool boolean(const nlohmann::json& value) {
  return value.is_boolean() && value.get<bool>();
}

SignalStatus signal_of(const nlohmann::json& json) {
  return {text(json, "signal"), integer(json, "available"), integer(json, "capacity")};
}

ThresholdStatus threshold_of(const nlohmann::json& json) {
  ThresholdStatus threshold;
  threshold.signal = text(json, "signal");
  threshold.kind = text(json, "kind");
  if (const auto grace = number(json, "grace_seconds")) threshold.grace_seconds = *grace;
  threshold.limit = integer(json, "limit");
  threshold.available = integer(json, "available");
  threshold.below_for_seconds = number(json, "below_for_seconds");
  threshold.met = boolean(at(json, "met"));
  threshold.forecast_seconds = number(json, "forecast_seconds");
  return threshold;
}

StallsByCause stalls_of(const nlohmann::json& json) {
  StallsByCause stalls;
  for (const auto& [cause, waits] : json.items())
    stalls[cause] = {integer(waits, "ns").value_or(0), integer(waits, "count").value_or(0),
                     integer(waits, "p99_ns")};
  return stalls;
}

// In the order of the daemon's table; causes that only a newer daemon knows come last.
std::optional<CpuWaitsByCause> cpu_waits_of(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  CpuWaitsByCause waits;
  for (const std::string_view cause : kCpuWaitCauseNames)
    if (const auto ns = integer(json, std::string(cause).c_str())) waits.emplace_back(cause, *ns);
  for (const auto& [cause, ns] : json.items())
    if (std::find(kCpuWaitCauseNames.begin(), kCpuWaitCauseNames.end(), cause) ==
        kCpuWaitCauseNames.end())
      waits.emplace_back(cause, integer(json, cause.c_str()).value_or(0));
  return waits;
}

std::string pod_of_pair(const nlohmann::json& pod) {
  return pod.is_object() ? text(pod, "namespace") + "/" + text(pod, "name") : "";
}

std::vector<WaitPairStatus> pairs_of(const nlohmann::json& json) {
  std::vector<WaitPairStatus> pairs;
  for (const nlohmann::json& pair : json)
    pairs.push_back({pod_of_pair(at(pair, "waiter")), pod_of_pair(at(pair, "holder")),
                     integer(pair, "ns").value_or(0)});
  return pairs;
}

std::map<std::string, ProgramStatus> programs_of(const nlohmann::json& json) {
  std::map<std::string, ProgramStatus> programs;
  for (const auto& [name, program] : json.items())
    programs[name] = {boolean(at(program, "loaded")), text(program, "hook"),
                      integer(program, "lost").value_or(0)};
  return programs;
}

// The sum of all scopes; absent if the document lacks them. Release 0.1 has no "pods".
std::optional<std::int64_t> oom_kills_of(const nlohmann::json& json) {
  const auto limit = integer(json, "limit"), node = integer(json, "node");
  if (!limit || !node) return std::nullopt;
  return *limit + integer(json, "pods").value_or(0) + *node;
}

Resources resources_of(const nlohmann::json& json) {
  Resources resources;
  for (const auto& [resource, quantity] : json.items())
    if (quantity.is_string()) resources[resource] = quantity.get<std::string>();
  return resources;
}

NodeResources node_of(const nlohmann::json& json) {
  return {resources_of(at(json, "capacity")), resources_of(at(json, "reserved")),
          resources_of(at(json, "allocatable")), resources_of(at(json, "requested")),
          resources_of(at(json, "limits"))};
}

std::optional<SwapStatus> swap_of(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto bytes = [&](const char* key) { return integer(json, key).value_or(0); };
  return SwapStatus{.available = bytes("available"),
                    .in_force = boolean(at(json, "in_force")),
                    .swap = !json.contains("swap") || boolean(at(json, "swap")),
                    .bound = text(json, "bound"),
                    .kubelet = bytes("kubelet"),
                    .memory = bytes("memory"),
                    .gain = bytes("gain"),
                    .filling = bytes("filling"),
                    .resident = bytes("resident"),
                    .cold = bytes("cold"),
                    .compressed = bytes("compressed"),
                    .compressed_size = bytes("compressed_size"),
                    .on_disk = bytes("on_disk")};
}

PodMemoryStatus pod_memory_of(const nlohmann::json& json) {
  const auto count = [&](const char* key) { return integer(json, key).value_or(0); };
  return {.raised_limits = count("raised_limits"),
          .raised_bytes = count("raised_bytes"),
          .raises = count("raises"),
          .lowerings = count("lowerings"),
          .background_reclaimed = count("background_reclaimed"),
          .cold_pushed = count("cold_pushed"),
          .cold_returned = count("cold_returned")};
}

CpuBurstStatus cpu_burst_of(const nlohmann::json& json) {
  const auto count = [&](const char* key) { return integer(json, key).value_or(0); };
  return {.pods = count("pods"),
          .granted = count("granted"),
          .withdrawn = count("withdrawn"),
          .cpus = number(json, "cpus").value_or(0)};
}

CpuSuppressStatus cpu_suppress_of(const nlohmann::json& json) {
  const auto count = [&](const char* key) { return integer(json, key).value_or(0); };
  return {.pods = count("pods"), .suppressed = count("suppressed"), .released = count("released")};
}

PodSwapStatus pod_swap_of(const nlohmann::json& json) {
  const auto count = [&](const char* key) { return integer(json, key).value_or(0); };
  return {.limited = count("limited"),
          .kept_in_zswap = count("kept_in_zswap"),
          .throttles = count("throttles"),
          .set = count("set")};
}

PodStatus pod_of(const nlohmann::json& json) {
  PodStatus pod;
  pod.pod_namespace = text(json, "namespace");
  pod.name = text(json, "name");
  pod.uid = text(json, "uid");
  pod.qos = text(json, "qos");
  if (const auto priority = integer(json, "priority")) pod.priority = *priority;
  pod.state = text(json, "state");
  pod.working_set = integer(json, "working_set");
  pod.request = integer(json, "request");
  pod.limit = integer(json, "limit");
  pod.over = integer(json, "over_request");
  pod.disk = integer(json, "disk");
  pod.swap = integer(json, "swap");
  pod.tasks = integer(json, "tasks");
  pod.oom_kills = integer(json, "oom_kills");
  pod.eviction_order = integer(json, "eviction_order");
  pod.cpu = integer(json, "cpu_ns");
  pod.throttled = integer(json, "throttled_ns");
  pod.memory_waiting = integer(json, "memory_waiting_ns");
  if (const nlohmann::json& stalls = at(json, "stalls"); stalls.is_object())
    pod.stalls = stalls_of(stalls);
  pod.cpu_waits = cpu_waits_of(at(json, "cpu_waits"));
  pod.cpu_burst = number(json, "cpu_burst");
  pod.cpu_suppressed = boolean(at(json, "cpu_suppressed"));
  for (const nlohmann::json& field : at(json, "ignored_fields"))
    if (field.is_string()) pod.ignored.push_back(field.get<std::string>());
  return pod;
}

MemoryForecastStatus memory_forecast_of(const nlohmann::json& json) {
  return {.predictor = text(json, "predictor"),
          .bytes = integer(json, "bytes"),
          .held = integer(json, "held").value_or(0),
          .exceeded = integer(json, "exceeded").value_or(0),
          .mean_error = number(json, "mean_error_ratio")};
}

Status status_of(const nlohmann::json& json) {
  Status status;
  status.version = text(json, "version");
  status.mode = text(json, "mode");
  status.at_ns = integer(json, "at_ns");
  status.pods_at_ns = integer(json, "pods_at_ns");
  for (const nlohmann::json& signal : at(json, "signals"))
    status.signals.push_back(signal_of(signal));
  status.swap = swap_of(at(json, "swap"));
  for (const nlohmann::json& threshold : at(json, "thresholds"))
    status.thresholds.push_back(threshold_of(threshold));
  for (const auto& [name, holds] : at(json, "conditions").items())
    status.conditions[name] = boolean(holds);
  for (const nlohmann::json& taint : at(json, "taints"))
    status.taints.push_back(text(taint, "taint"));
  status.node = node_of(at(json, "node"));
  for (const nlohmann::json& pod : at(json, "pods"))
    status.pods.push_back(pod_of(pod));
  status.cgroups = integer(json, "cgroups");
  const nlohmann::json& counters = at(json, "counters");
  status.evicted = integer(counters, "evicted");
  status.would_evict = integer(counters, "would_evict");
  status.failed = integer(counters, "failed");
  status.missing_readings = integer(counters, "missing_readings");
  status.pod_memory = pod_memory_of(at(counters, "pod_memory"));
  status.cpu_burst = cpu_burst_of(at(counters, "cpu_burst"));
  status.cpu_suppress = cpu_suppress_of(at(counters, "cpu_suppress"));
  status.pod_swap = pod_swap_of(at(counters, "pod_swap"));
  status.self_cpu_seconds = number(at(json, "process"), "cpu_seconds");
  status.self_resident = integer(at(json, "process"), "resident_bytes");
  for (const auto& [group, source] : at(json, "sources").items())
    if (source.is_string()) status.sources[group] = source.get<std::string>();
  for (const auto& [signal, score] : at(json, "forecasts").items())
    if (const auto mean = number(score, "mean_error_seconds"))
      status.forecast_errors[signal] = *mean;
  for (const nlohmann::json& forecast : at(json, "memory_forecasts"))
    status.memory_forecasts.push_back(memory_forecast_of(forecast));
  status.kernel_oom_kills = oom_kills_of(at(counters, "kernel_oom_kills"));
  status.stalls = stalls_of(at(at(json, "waits"), "stalls"));
  status.cpu_pairs = pairs_of(at(at(json, "waits"), "cpu_pairs"));
  status.memory_pairs = pairs_of(at(at(json, "waits"), "memory_pairs"));
  status.programs = programs_of(at(json, "programs"));
  status.audit_log = text(json, "audit_log");
  return status;
}

}  // namespace

Result<Status> parse_status(std::string_view document) {
  const nlohmann::json json = nlohmann::json::parse(document, nullptr, false);
  if (!json.is_object()) return failure("headroomd's status is not a JSON object");
  if (json.empty()) return failure("headroomd has not read the node yet; try again");
  try {
    return status_of(json);
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's status: ") + e.what());
  }
}

}  // namespace headroom::ctl
