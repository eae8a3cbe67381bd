// SPDX-License-Identifier: Apache-2.0
#include "manifest/node_manifest.h"

#include "config/yaml/section.h"
#include "config/yaml/yaml.h"
#include "manifest/pod_fields.h"

#include <array>
#include <utility>

namespace headroom::observe {
namespace {

using config::Choice;
using config::Int32;
using config::Section;

constexpr std::array<Choice<TaintEffect>, 3> kTaintEffects{
    {{"NoSchedule", TaintEffect::kNoSchedule},
     {"PreferNoSchedule", TaintEffect::kPreferNoSchedule},
     {"NoExecute", TaintEffect::kNoExecute}}};
constexpr std::array<Choice<QosClass>, 3> kPodQosClasses{{{"Guaranteed", QosClass::kGuaranteed},
                                                          {"Burstable", QosClass::kBurstable},
                                                          {"BestEffort", QosClass::kBestEffort}}};

// A list of a thousand nodes, each with its images, has a million keys and values.
constexpr std::size_t kMaxNodes = 5'000'000;

ResourceCounts read_counts(const Section& parent, std::string_view key) {
  ResourceList list;
  if (const auto section = parent.map(key))
    for (const config::yaml::Entry& entry : section->entries())
      if (const auto quantity = section->quantity(entry)) list.emplace(entry.key, *quantity);
  return counts_of(list);
}

void read_taints(const Section& spec, std::vector<Taint>& taints) {
  const auto sections = spec.list_of_maps("taints");
  if (!sections) return;
  for (const Section& section : *sections) {
    const auto key = section.string("key");
    const auto effect = section.choice<TaintEffect>("effect", kTaintEffects);
    if (!section.has("key"))
      section.add_error_at(section.line(), "missing " + section.path_of("key"));
    if (!section.has("effect"))
      section.add_error_at(section.line(), "missing " + section.path_of("effect"));
    if (key && effect) taints.push_back({*key, section.string("value").value_or(""), *effect});
  }
}

PodOnNode read_pod_on_node(const Section& section) {
  PodOnNode pod;
  pod.pod_namespace = section.string("namespace").value_or("");
  pod.name = section.string("name").value_or("");
  pod.uid = section.string("uid").value_or("");
  if (const auto qos = section.choice<QosClass>("qosClass", kPodQosClasses)) pod.qos = *qos;
  if (const auto priority = section.integer("priority", Int32::min(), Int32::max()))
    pod.priority = static_cast<std::int32_t>(*priority);
  pod.critical = section.boolean("critical").value_or(false);
  pod.requests = read_counts(section, "requests");
  pod.scored_requests = read_counts(section, "scoredRequests");
  read_host_ports(section, false, pod.host_ports);
  return pod;
}

NodeState read_node(const Section& object) {
  NodeState node;
  if (const auto metadata = object.map("metadata")) {
    node.name = metadata->string("name").value_or("");
    node.labels = read_labels(*metadata, "labels");
  }
  if (node.name.empty()) object.add_error_at(object.line(), "missing metadata.name");
  if (const auto spec = object.map("spec")) {
    read_taints(*spec, node.taints);
    node.unschedulable = spec->boolean("unschedulable").value_or(false);
  }
  if (const auto status = object.map("status"))
    node.allocatable = read_counts(*status, "allocatable");
  if (const auto ours = object.map("headroom"))
    if (const auto pods = ours->list_of_maps("pods"))
      for (const Section& pod : *pods)
        node.pods.push_back(read_pod_on_node(pod));
  return node;
}

void read_object(const Section& object, NodeManifests& manifests, bool in_node_list) {
  const auto kind = object.string("kind");
  if (kind == "NodeList" || kind == "List") {
    if (const auto items = object.list_of_maps("items"))
      for (const Section& item : *items)
        read_object(item, manifests, kind == "NodeList");
    return;
  }
  if (kind != "Node" && (object.has("kind") || !in_node_list))
    return object.add_error_at(object.line_of("kind"), "expected kind Node, found " +
                                                           (kind ? "\"" + *kind + "\"" : "none"));
  const std::size_t before = manifests.diagnostics.size();
  NodeState node = read_node(object);
  if (manifests.diagnostics.size() == before) manifests.nodes.push_back(std::move(node));
}

}  // namespace

NodeManifests parse_nodes(const std::string& text, const std::string& file) {
  NodeManifests manifests;
  for (const config::yaml::Node& document :
       config::yaml::parse(text, file, manifests.diagnostics, {.nodes = kMaxNodes})) {
    if (document.is_null()) continue;
    if (document.is_map())
      read_object(Section(document, "", file, manifests.diagnostics), manifests, false);
    else
      manifests.diagnostics.push_back(
          {file, document.line, "expected a Node, found " + describe(document)});
  }
  if (manifests.nodes.empty() && manifests.diagnostics.empty())
    manifests.diagnostics.push_back({file, 0, "there is no Node in it"});
  return manifests;
}

NodeManifests read_nodes(const std::filesystem::path& file) {
  const auto text = config::read_file(file);
  if (text) return parse_nodes(*text, file.string());
  return {.nodes = {}, .diagnostics = {{file.string(), 0, text.error().what}}};
}

}  // namespace headroom::observe
