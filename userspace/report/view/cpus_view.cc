// SPDX-License-Identifier: Apache-2.0
#include "report/view/cpus_view.h"

#include "base/json_text.h"

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
  return to_json_text(json);
}

namespace {

using Json = nlohmann::ordered_json;

Json cpu_json(const CpuLocation& place) {
  return {{"cpu", place.cpu},
          {"core", place.core},
          {"uncore", place.uncore},
          {"socket", place.socket},
          {"numa", place.numa}};
}

Json container_cpus_json(const ContainerCpuView& container_cpus) {
  return {{"namespace", container_cpus.pod_namespace},
          {"pod", container_cpus.pod},
          {"uid", container_cpus.uid},
          {"container", container_cpus.container},
          {"requested", container_cpus.wanted},
          {"cpus", container_cpus.cpus.format()},
          {"runs_on", container_cpus.runs_on.format()},
          {"refusal", container_cpus.refusal},
          {"partition", container_cpus.partition},
          {"shares_in_pod", container_cpus.shares_in_pod}};
}

Json pool_json(const CpusView& view) {
  if (!view.pool) return nullptr;
  return {{"size_millicores", view.pool->size.count},
          {"requested_millicores", view.pool->requested.count},
          {"unknown_pods", view.pool_unknown},
          {"enforced", view.pool_limit_enforced}};
}

}  // namespace

std::string cpus_json(const CpusView& view) {
  Json places = Json::array(), containers = Json::array();
  for (const CpuLocation& place : view.places)
    places.push_back(cpu_json(place));
  for (const ContainerCpuView& container_cpus : view.containers)
    containers.push_back(container_cpus_json(container_cpus));
  const Json json{{"mode", view.mode},
                  {"policy", view.policy},
                  {"cpus", std::move(places)},
                  {"reserved", view.reserved.format()},
                  {"shared", view.shared.format()},
                  {"shared_pool", pool_json(view)},
                  {"offline", view.offline.format()},
                  {"isolated", view.isolated.format()},
                  {"nohz_full", view.nohz_full.format()},
                  {"containers", std::move(containers)},
                  {"pinning_requests", view.pinning_requests},
                  {"pinning_errors", view.pinning_errors},
                  {"writes", view.writes},
                  {"failed", view.failed},
                  {"repairs", view.repaired},
                  {"state_not_saved", view.unsaved},
                  {"error", view.error}};
  return to_json_text(json);
}

}  // namespace headroom::report
