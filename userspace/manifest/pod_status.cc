// SPDX-License-Identifier: Apache-2.0
#include "manifest/pod_status.h"

#include "manifest/pod_fields.h"

#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::observe {
namespace {

using config::Section;

constexpr std::array<config::Choice<QosClass>, 3> kQosClasses{
    {{"Guaranteed", QosClass::kGuaranteed},
     {"Burstable", QosClass::kBurstable},
     {"BestEffort", QosClass::kBestEffort}}};

// The resources that the kubelet allocated count, not those that were requested since: an in-place
// resize may wait, or may never be granted (KEP 1287). The limits in the status come from the
// runtime and are rounded: they replace those of the specification only while a resize is not
// granted.
void apply_allocated_resources(const Section& status, Container& container) {
  const ResourceList allocated = read_quantities(status, "allocatedResources");
  const auto resources = status.map("resources");
  const ResourceList limits = resources ? read_quantities(*resources, "limits") : ResourceList{};
  for (const auto& [resource, quantity] : allocated) {
    const auto asked = container.requests.find(resource);
    if (asked != container.requests.end() && asked->second == quantity) continue;
    container.requests.insert_or_assign(resource, quantity);
    const auto limit = limits.find(resource);
    if (limit != limits.end() && container.limits.contains(resource))
      container.limits.insert_or_assign(resource, limit->second);
  }
}

void apply_container_statuses(const Section& status, std::string_view key,
                              std::vector<Container>& containers) {
  const auto sections = status.list_of_maps(key);
  if (!sections) return;
  std::map<std::string_view, Container*> by_name;  // the first of each name
  for (Container& container : containers)
    by_name.emplace(container.name, &container);
  for (const Section& section : *sections) {
    const auto name = section.string("name");
    const auto container = name ? by_name.find(*name) : by_name.end();
    if (container != by_name.end()) apply_allocated_resources(section, *container->second);
  }
}

// "containerd://<id>" → "<id>".
std::string without_scheme(const std::string& id) {
  const std::size_t at = id.find("://");
  return at == std::string::npos ? id : id.substr(at + 3);
}

}  // namespace

bool has_ended(const Section& object) {
  const auto status = object.map("status");
  const auto phase = status ? status->string("phase") : std::nullopt;
  return phase == "Succeeded" || phase == "Failed";
}

void read_status(const Section& object, Pod& pod) {
  const auto status = object.map("status");
  if (!status) return;
  pod.declared_qos = status->choice<QosClass>("qosClass", kQosClasses);
  if (pod.pod_level) apply_allocated_resources(*status, *pod.pod_level);
  apply_container_statuses(*status, "initContainerStatuses", pod.init_containers);
  apply_container_statuses(*status, "containerStatuses", pod.containers);
}

ContainerIds container_ids(const Section& object, const Pod& pod) {
  ContainerIds ids;
  const auto status = object.map("status");
  if (!status) return ids;
  for (const std::string_view key :
       {"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"}) {
    const auto sections = status->list_of_maps(key);
    if (!sections) continue;
    for (const Section& section : *sections) {
      std::string id = without_scheme(section.string("containerID").value_or(""));
      if (id.empty()) continue;
      ids.insert_or_assign(std::move(id),
                           ContainerIdentity{.container = section.string("name").value_or(""),
                                             .image = section.string("image").value_or(""),
                                             .pod = pod.name,
                                             .pod_namespace = pod.pod_namespace});
    }
  }
  return ids;
}

}  // namespace headroom::observe
