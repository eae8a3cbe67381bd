// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/pod_units.h"

#include "config/run_paths.h"
#include "ctl/run/unit_name.h"
#include "judge/allocatable/cgroup/cgroup_name.h"
#include "judge/cpuset/policy/cpu_request.h"
#include "judge/oom/oom_score.h"
#include "judge/resources/qos.h"

namespace headroom::ctl {
namespace {

// The unit of a single container is named after the pod only.
std::string unit_of(const Pod& pod, const Container& container) {
  const bool single = pod.containers.size() == 1 && pod.init_containers.empty();
  return unit_name({.pod_namespace = pod.pod_namespace,
                    .pod = pod.name,
                    .container = single ? "" : container.name});
}

// If exclusive CPUs are enforced, a container that gets some has no CPU quota.
Cpus cpus_of(int wanted, const config::Config& config) {
  const bool exclusive_cpus_enabled = config.cpus.mode == config::CpusConfig::Mode::kEnforce &&
                                      config.cpus.policy == config::CpusConfig::Policy::kStatic;
  return exclusive_cpus_enabled && wanted > 0 ? Cpus::kExclusive : Cpus::kShared;
}

}  // namespace

Result<PodUnits> make_pod_units(const Pod& pod, const config::Config& config,
                                const NodeMemory& node) {
  const auto kubepods = CgroupName::parse(CgroupDriver::kSystemd, config.pods_cgroup);
  if (!kubepods)
    return failure("the pods' cgroup is not a systemd slice: " + kubepods.error().what());
  const auto name = pod_name(*kubepods, qos_class(pod), pod.uid);
  if (!name) return failure(name.error().what());
  PodUnits pod_units{
      .slice = name->unit(),
      .path = name->path(CgroupDriver::kSystemd),
      .values =
          pod_cgroup(pod, config.sizing, node, cpus_of(exclusive_cpus_requested(pod), config)),
      .containers = {},
      .manifest = config::run_manifests(config) / (pod.pod_namespace + "." + pod.name + ".yaml")};
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      pod_units.containers.push_back(
          {.name = container.name,
           .unit = unit_of(pod, container),
           .values = container_cgroup(pod, container, config.sizing, node,
                                      cpus_of(exclusive_cpus_requested(pod, container), config)),
           .oom_score_adj = oom_score_adj(pod, container, node.capacity)});
  return pod_units;
}

}  // namespace headroom::ctl
