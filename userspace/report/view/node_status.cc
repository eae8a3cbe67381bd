// SPDX-License-Identifier: Apache-2.0
#include "report/view/node_status.h"

#include "base/clock.h"

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json list_json(const ResourceList& list) {
  Json json = Json::object();
  for (const auto& [resource, quantity] : list)
    json[resource] = quantity.canonical();
  return json;
}

Json counts_json(const ResourceCounts& counts) {
  Json json = Json::object();
  for (const auto& [resource, count] : counts)
    json[resource] = headroom::quantity_of(resource, count).canonical();
  return json;
}

Json labels_json(const headroom::Labels& labels) {
  Json json = Json::object();
  for (const auto& [key, value] : labels)
    json[key] = value;
  return json;
}

Json taints_json(const std::vector<Taint>& taints) {
  Json json = Json::array();
  for (const Taint& taint : taints) {
    Json entry{{"key", taint.key}};
    if (!taint.value.empty()) entry["value"] = taint.value;
    entry["effect"] = name(taint.effect);
    json.push_back(std::move(entry));
  }
  return json;
}

Json conditions_json(const NodeStatus& status) {
  Json json = Json::array();
  for (std::size_t i = 0; i < kConditions; ++i) {
    const auto condition = static_cast<Condition>(i);
    const ConditionStatus& node_condition = status.conditions[i];
    const ConditionText text = kubelet_condition_text(condition, node_condition.holds);
    json.push_back({{"type", name(condition)},
                    {"status", node_condition.holds ? "True" : "False"},
                    {"lastHeartbeatTime", rfc3339(status.at)},
                    {"lastTransitionTime", rfc3339(node_condition.since)},
                    {"reason", text.reason},
                    {"message", text.message}});
  }
  return json;
}

Json port_json(const HostPort& port) {
  Json json{{"hostPort", port.port}, {"protocol", name(port.protocol)}};
  if (!port.address.empty()) json["hostIP"] = port.address;
  return json;
}

Json pod_json(const PodOnNode& pod) {
  Json json{{"namespace", pod.pod_namespace},
            {"name", pod.name},
            {"uid", pod.uid},
            {"qosClass", name(pod.qos)},
            {"priority", pod.priority},
            {"critical", pod.critical},
            {"requests", counts_json(pod.requests)},
            {"scoredRequests", counts_json(pod.scored_requests)}};
  if (!pod.host_ports.empty()) {
    json["ports"] = Json::array();
    for (const HostPort& port : pod.host_ports)
      json["ports"].push_back(port_json(port));
  }
  return json;
}

Json headroom_json(const NodeStatus& status) {
  Json pods = Json::array();
  for (const PodOnNode& pod : status.state.pods)
    pods.push_back(pod_json(pod));
  Json json{{"version", HEADROOM_VERSION},
            {"reserved", list_json(status.reserved)},
            {"requested", list_json(status.requested)},
            {"limits", list_json(status.limits)},
            {"pods", std::move(pods)}};
  if (!status.error.empty()) json["error"] = status.error;
  return json;
}

}  // namespace

ConditionText kubelet_condition_text(Condition condition, bool holds) {
  switch (condition) {
    case Condition::kMemoryPressure:
      return holds ? ConditionText{"KubeletHasInsufficientMemory",
                                   "kubelet has insufficient memory available"}
                   : ConditionText{"KubeletHasSufficientMemory",
                                   "kubelet has sufficient memory available"};
    case Condition::kDiskPressure:
      return holds ? ConditionText{"KubeletHasDiskPressure", "kubelet has disk pressure"}
                   : ConditionText{"KubeletHasNoDiskPressure", "kubelet has no disk pressure"};
    case Condition::kPidPressure:
      return holds
                 ? ConditionText{"KubeletHasInsufficientPID",
                                 "kubelet has insufficient PID available"}
                 : ConditionText{"KubeletHasSufficientPID", "kubelet has sufficient PID available"};
    case Condition::kCpuPressure:
      return holds ? ConditionText{"HeadroomHasInsufficientCPU",
                                   "headroomd sees pods wait because the node has no CPU left"}
                   : ConditionText{"HeadroomHasSufficientCPU",
                                   "headroomd sees sufficient CPU available"};
  }
  return {};
}

Json node_json(const NodeStatus& status) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", status.state.name}, {"labels", labels_json(status.state.labels)}}},
          {"spec", {{"taints", taints_json(all_taints(status.state))}}},
          {"status",
           {{"capacity", list_json(status.capacity)},
            {"allocatable", list_json(status.allocatable)},
            {"conditions", conditions_json(status)}}},
          {"headroom", headroom_json(status)}};
}

}  // namespace headroom::report
