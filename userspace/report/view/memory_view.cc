// SPDX-License-Identifier: Apache-2.0
#include "report/view/memory_view.h"

#include "base/json_text.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json node_json(int id, const NumaNodeMemory& node) {
  Json resources = Json::object();
  for (const auto& [resource, table] : node.tables)
    resources[resource] = {{"total", table.total.count},
                           {"reserved", table.system_reserved.count},
                           {"allocatable", table.allocatable.count},
                           {"assigned", table.reserved.count},
                           {"free", table.free.count}};
  return {{"node", id}, {"group", format_nodes(node.group)}, {"resources", std::move(resources)}};
}

Json container_json(const ContainerMemoryView& container) {
  Json blocks = Json::array();
  for (const MemoryBlock& block : container.blocks)
    blocks.push_back({{"resource", block.type},
                      {"size", block.size.count},
                      {"nodes", format_nodes(block.nodes)}});
  return {{"namespace", container.pod_namespace},
          {"pod", container.pod},
          {"uid", container.uid},
          {"container", container.container},
          {"blocks", std::move(blocks)},
          {"runs_on", format_nodes(container.runs_on)},
          {"refusal", container.refusal}};
}

}  // namespace

std::string memory_json(const MemoryView& view) {
  Json nodes = Json::array(), containers = Json::array();
  for (const auto& [id, node] : view.nodes)
    nodes.push_back(node_json(id, node));
  for (const ContainerMemoryView& container : view.containers)
    containers.push_back(container_json(container));
  const Json json{{"mode", view.mode},
                  {"policy", view.policy},
                  {"nodes", std::move(nodes)},
                  {"containers", std::move(containers)},
                  {"pinning_requests", view.pinning_requests},
                  {"pinning_errors", view.pinning_errors},
                  {"writes", view.writes},
                  {"failed", view.failed},
                  {"repairs", view.repaired},
                  {"state_not_saved", view.unsaved}};
  return to_json_text(json);
}

}  // namespace headroom::report
