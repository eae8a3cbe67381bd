// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/placed_pod.h"

#include "config/run_paths.h"
#include "ctl/run/unit_name.h"
#include "judge/allocatable/cgroup_name.h"
#include "judge/allocatable/oom_score.h"
#include "judge/cpuset/cpu_request.h"
#include "judge/qos.h"

namespace headroom::ctl {
namespace {

// A pod of one container is known by its own name alone.
std::string unit_of(const Pod& pod, const Container& container) {
  const bool single = pod.containers.size() == 1 && pod.init_containers.empty();
  return unit_name({.pod_namespace = pod.pod_namespace,
                    .pod = pod.name,
                    .container = single ? "" : container.name});
}

// Where exclusive CPUs are dealt out, who has some is not held back on them.
Cpus cpus_of(int wanted, const config::Config& config) {
  const bool dealt = config.cpus.mode == config::CpusConfig::Mode::kEnforce &&
                     config.cpus.policy == config::CpusConfig::Policy::kStatic;
  return dealt && wanted > 0 ? Cpus::kExclusive : Cpus::kShared;
}

}  // namespace

Result<PlacedPod> place_here(const Pod& pod, const config::Config& config, const NodeMemory& node) {
  const auto kubepods = CgroupName::parse(CgroupDriver::kSystemd, config.pods_cgroup);
  if (!kubepods)
    return failure("the pods' cgroup is no slice of systemd: " + kubepods.error().what());
  const auto name = pod_name(*kubepods, qos_class(pod), pod.uid);
  if (!name) return failure(name.error().what());
  PlacedPod placed{
      .slice = name->unit(),
      .path = name->path(CgroupDriver::kSystemd),
      .values = pod_cgroup(pod, config.sizing, node, cpus_of(exclusive_cpus_wanted(pod), config)),
      .containers = {},
      .manifest = config::run_manifests(config) / (pod.pod_namespace + "." + pod.name + ".yaml")};
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      placed.containers.push_back(
          {.name = container.name,
           .unit = unit_of(pod, container),
           .values = container_cgroup(pod, container, config.sizing, node,
                                      cpus_of(exclusive_cpus_wanted(pod, container), config)),
           .oom_score_adj = oom_score_adj(pod, container, node.capacity)});
  return placed;
}

}  // namespace headroom::ctl
