// SPDX-License-Identifier: Apache-2.0
#include "judge/vectors/pod_json.h"

#include <stdexcept>

namespace headroom::vectors {
namespace {

using nlohmann::json;

const json& list_in(const json& object, const char* key) {
  static const json none = json::array();
  const auto entry = object.find(key);
  return entry == object.end() ? none : *entry;
}

ResourceList resources_in(const json& object, const char* key) {
  ResourceList list;
  for (const auto& [resource, text] : list_in(object, key).items()) {
    const auto quantity = Quantity::parse(text.get<std::string>());
    if (!quantity) throw std::runtime_error(resource + ": " + quantity.error().what);
    list[resource] = *quantity;
  }
  return list;
}

Container container_of(const json& object) {
  return {.name = object.value("name", ""),
          .requests = resources_in(object, "requests"),
          .limits = resources_in(object, "limits"),
          .sidecar = object.value("restartPolicy", "") == "Always"};
}

// [bytes, inodes]
FsUsage filesystem_of(const json& pair) {
  return {Bytes{pair.at(0).get<std::int64_t>()}, pair.at(1).get<std::int64_t>()};
}

}  // namespace

Pod pod_of(const json& object, bool pod_level_enabled) {
  Pod pod;
  pod.name = object.at("name").get<std::string>();
  pod.uid = object.at("uid").get<std::string>();
  pod.priority = object.value("priority", 0);
  pod.priority_class = object.value("priorityClassName", "");
  pod.is_static = object.value("static", false);
  pod.overhead = resources_in(object, "overhead");
  for (const json& each : list_in(object, "initContainers"))
    pod.init_containers.push_back(container_of(each));
  for (const json& each : list_in(object, "containers"))
    pod.containers.push_back(container_of(each));
  if (pod_level_enabled && object.contains("resources"))
    pod.pod_level = container_of(object.at("resources"));
  return pod;
}

PodUsage usage_of(const json& object) {
  PodUsage usage;
  if (object.contains("memory_working_set"))
    usage.working_set = Bytes{object.at("memory_working_set").get<std::int64_t>()};
  if (object.contains("processes")) usage.processes = object.at("processes").get<std::int64_t>();
  for (const auto& [name, pair] : list_in(object, "rootfs").items())
    usage.containers.push_back({.name = name, .rootfs = filesystem_of(pair), .logs = {}});
  for (const auto& [name, pair] : list_in(object, "logs").items())
    usage.containers.push_back({.name = name, .rootfs = {}, .logs = filesystem_of(pair)});
  for (const auto& [name, pair] : list_in(object, "local_volumes").items())
    usage.local_volumes.push_back(filesystem_of(pair));
  return usage;
}

std::string text_of(const CgroupValues& values) {
  std::string text;
  for (const CgroupSetting& setting : cgroup_settings(values))
    text += setting.file + "=" + setting.value + " ";
  return text;
}

}  // namespace headroom::vectors
