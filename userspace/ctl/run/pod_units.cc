// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/pod_units.h"

#include "config/config.h"
#include "judge/allocatable/cgroup/cgroup_name.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/oom/oom_score.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>

namespace headroom::ctl {
namespace {

constexpr std::string_view kPrefix = "headroom-run-", kSuffix = ".service";

}  // namespace

std::string unit_name(const RunName& name) {
  std::string unit(kPrefix);
  unit += name.pod_namespace + "." + name.pod;
  if (!name.container.empty()) unit += "." + name.container;
  return unit.append(kSuffix);
}

std::optional<RunName> run_name(std::string_view unit) {
  if (!unit.starts_with(kPrefix) || !unit.ends_with(kSuffix)) return std::nullopt;
  unit.remove_prefix(kPrefix.size());
  unit.remove_suffix(kSuffix.size());
  const std::size_t first = unit.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(first + 1);
  const std::size_t second = std::min(rest.find('.'), rest.size());
  return RunName{.pod_namespace = std::string(unit.substr(0, first)),
                 .pod = std::string(rest.substr(0, second)),
                 .container = std::string(rest.substr(std::min(second + 1, rest.size())))};
}

bool is_dns_label(std::string_view text) {
  const auto inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 63 && inner(text.front()) && inner(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return inner(c) || c == '-'; });
}

namespace {

// The unit of a single container is named after the pod only.
std::string unit_of(const Pod& pod, const Container& container) {
  const bool single = pod.containers.size() == 1 && pod.init_containers.empty();
  return unit_name({.pod_namespace = pod.pod_namespace,
                    .pod = pod.name,
                    .container = single ? "" : container.name});
}

// Whether the pod's containers get all their CPUs for themselves, or at least one of them does: a
// pod with resources of its own keeps its quota unless all do (kubelet: PodHasExclusiveCPUs).
int exclusive_cpus_of(const Pod& pod, PodLevelMode mode) {
  if (!has_pod_level_resources(pod)) return exclusive_cpus_requested(pod, mode);
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (exclusive_cpus_requested(pod, container, mode) == 0) return 0;
  return exclusive_cpus_requested(pod, mode);
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
  const PodLevelMode mode = topology_rules(config.cpus).pod_level_mode();
  PodUnits pod_units{
      .slice = name->unit(),
      .path = name->path(CgroupDriver::kSystemd),
      .values = pod_cgroup(pod, config.sizing, node, cpus_of(exclusive_cpus_of(pod, mode), config)),
      .containers = {},
      .manifest = config::run_manifests(config) / (pod.pod_namespace + "." + pod.name + ".yaml")};
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      pod_units.containers.push_back(
          {.name = container.name,
           .unit = unit_of(pod, container),
           .values =
               container_cgroup(pod, container, config.sizing, node,
                                cpus_of(exclusive_cpus_requested(pod, container, mode), config)),
           .oom_score_adj = oom_score_adj(pod, container, node.capacity)});
  return pod_units;
}

}  // namespace headroom::ctl
