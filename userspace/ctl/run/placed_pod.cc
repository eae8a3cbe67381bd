// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/placed_pod.h"

#include "judge/allocatable/cgroup_name.h"
#include "judge/allocatable/oom_score.h"
#include "judge/allocatable/pod_cgroup.h"
#include "judge/qos.h"

namespace headroom::ctl {

std::string unit_of(const std::string& pod_namespace, const std::string& name) {
  return "headroom-run-" + pod_namespace + "." + name + ".service";
}

Result<PlacedPod> place_here(const Pod& pod, const config::Config& config, Bytes memory_capacity) {
  const auto kubepods = CgroupName::parse(CgroupDriver::kSystemd, config.pods_cgroup);
  if (!kubepods)
    return failure("the pods' cgroup is no slice of systemd: " + kubepods.error().what());
  const auto name = pod_name(*kubepods, qos_class(pod), pod.uid);
  if (!name) return failure(name.error().what());
  const CgroupValues values = pod_cgroup(
      pod, {.weights = config.slices.weights},
      {.capacity = memory_capacity, .swap = {}, .allocatable = {}, .huge_page_sizes = {}});
  return PlacedPod{
      .slice = name->unit(),
      .unit = unit_of(pod.pod_namespace, pod.name),
      .properties = act::unit_properties(values),
      .oom_score_adj = oom_score_adj(pod, pod.containers.front(), memory_capacity),
      .manifest = config.pod_manifests / (pod.pod_namespace + "." + pod.name + ".json")};
}

}  // namespace headroom::ctl
