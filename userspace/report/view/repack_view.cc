// SPDX-License-Identifier: Apache-2.0
#include "report/view/repack_view.h"

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json span_json(const CpuSpread& span) {
  return {{"numa_nodes", span.numa_nodes},
          {"sockets", span.sockets},
          {"caches", span.caches},
          {"cores", span.cores}};
}

Json packing_json(const PackingScore& packing) {
  Json json = span_json(packing.span);
  json["free_cores"] = packing.free_cores;
  json["max_free_cpus_on_one_node"] = packing.free_on_one_node;
  json["containers_far_from_devices"] = packing.far_from_devices;
  json["containers_without_all_cpus"] = packing.unsatisfied_containers;
  return json;
}

Json container_json(const RepackedContainer& one) {
  return {{"namespace", one.pod_namespace},
          {"pod", one.pod},
          {"uid", one.uid},
          {"container", one.container},
          {"from", one.from.format()},
          {"to", one.to.format()},
          {"runs_on", one.runs_on.format()},
          {"before", span_json(one.before)},
          {"after", span_json(one.after)}};
}

}  // namespace

std::string repack_json(const RepackView& view) {
  Json containers = Json::array();
  for (const RepackedContainer& one : view.containers)
    containers.push_back(container_json(one));
  const Json json{{"dry_run", view.dry_run},
                  {"moved_cpus", view.moved_cpus},
                  {"before", packing_json(view.before)},
                  {"after", packing_json(view.after)},
                  {"containers", std::move(containers)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headroom::report
