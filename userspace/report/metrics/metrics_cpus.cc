// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/metrics_cpus.h"

#include "report/metrics/metric_family.h"

#include <algorithm>
#include <map>

namespace headroom::report {
namespace {

// CPUs in exclusive use. An init container and a later container may have the same CPUs.
CpuSet exclusive(const CpusView& view) {
  CpuSet all;
  for (const ContainerCpuView& container_cpus : view.containers)
    all |= container_cpus.cpus;
  return all;
}

std::map<std::int64_t, CpuSet> by_numa(const CpusView& view) {
  std::map<std::int64_t, CpuSet> nodes;
  for (const CpuLocation& place : view.places)
    nodes[place.numa].insert(place.cpu);
  return nodes;
}

void add_numa_families(const CpusView& view, Families& families) {
  const auto nodes = by_numa(view);
  const CpuSet taken = exclusive(view);
  auto allocated = MetricFamilyBuilder::gauge("kubelet_cpu_manager_allocation_per_numa",
                                              "Exclusively allocated CPUs of the NUMA node.");
  auto all = MetricFamilyBuilder::gauge("headroom_numa_cpus", "CPUs of the NUMA node.");
  for (const auto& [node, cpus] : nodes) {
    const std::string number = std::to_string(node);
    allocated.add(double(cpus.overlap(taken)), {{"numa_node", number}});
    all.add(double(cpus.size()), {{"numa_node", number}});
  }
  allocated.append_to(families);
  all.append_to(families);
}

// The number of NUMA nodes that have some of these CPUs.
int spread(const CpuSet& cpus, const std::map<std::int64_t, CpuSet>& nodes) {
  return static_cast<int>(std::ranges::count_if(
      nodes, [&](const auto& node) { return cpus.overlap(node.second) > 0; }));
}

void add_container_families(const CpusView& view, Families& families) {
  const auto nodes = by_numa(view);
  auto own =
      MetricFamilyBuilder::gauge("headroom_container_exclusive_cpus",
                                 "Exclusive CPUs of the container. 0: the request was refused.");
  auto on = MetricFamilyBuilder::gauge("headroom_container_numa_nodes",
                                       "NUMA nodes of the container's exclusive CPUs.");
  for (const ContainerCpuView& container_cpus : view.containers) {
    const Labels container_labels = labels({{"namespace", container_cpus.pod_namespace},
                                            {"pod", container_cpus.pod},
                                            {"container", container_cpus.container}});
    own.add(double(container_cpus.cpus.size()), container_labels);
    on.add(double(spread(container_cpus.cpus, nodes)), container_labels);
  }
  own.append_to(families);
  on.append_to(families);
}

void add_pool_families(const CpusView& view, Families& families) {
  if (view.pool) {
    const auto cpus = [](MilliCpu amount) { return static_cast<double>(amount.count) / 1000.0; };
    MetricFamilyBuilder::gauge("headroom_shared_pool_cpus",
                               "CPUs of the shared pool, without reserved CPUs.")
        .add(cpus(view.pool->size))
        .append_to(families);
    MetricFamilyBuilder::gauge("headroom_shared_pool_requested_cpus",
                               "CPUs requested by the pods of the shared pool.")
        .add(cpus(view.pool->requested))
        .append_to(families);
    MetricFamilyBuilder::gauge("headroom_shared_pool_unknown_pods",
                               "Pods in the shared pool whose CPU requests are unknown.")
        .add(static_cast<double>(view.pool_unknown))
        .append_to(families);
  }
  MetricFamilyBuilder::counter(
      "headroom_shared_pool_refusals_total",
      "Requests for exclusive CPUs refused because the shared pool needs them.")
      .add(view.pool_refusals)
      .append_to(families);
}

void add_kubelet_families(const CpusView& view, Families& families) {
  MetricFamilyBuilder::counter("kubelet_cpu_manager_pinning_requests_total",
                               "Containers for which exclusive CPUs were requested.")
      .add(view.pinning_requests)
      .append_to(families);
  MetricFamilyBuilder::counter("kubelet_cpu_manager_pinning_errors_total",
                               "Containers for which exclusive CPUs could not be allocated.")
      .add(view.pinning_errors)
      .append_to(families);
  MetricFamilyBuilder::counter("kubelet_topology_manager_admission_requests_total",
                               "Pods for which exclusive CPUs were requested.")
      .add(view.topology_requests)
      .append_to(families);
  MetricFamilyBuilder::counter("kubelet_topology_manager_admission_errors_total",
                               "Pods for which exclusive CPUs could not be allocated.")
      .add(view.topology_errors)
      .append_to(families);
  const std::string_view scope = view.topology_scope == TopologyScope::kPod ? "pod" : "container";
  const AlignmentCounts& aligned = view.aligned;
  MetricFamilyBuilder::counter("kubelet_container_aligned_compute_resources_count",
                               "Allocations that were aligned as configured.")
      .add(aligned.numa_node, {{"boundary", "numa_node"}, {"scope", scope}})
      .add(aligned.physical_cpu, {{"boundary", "physical_cpu"}, {"scope", "container"}})
      .add(aligned.uncore_cache, {{"boundary", "uncore_cache"}, {"scope", "container"}})
      .append_to(families);
  MetricFamilyBuilder::counter("kubelet_container_aligned_compute_resources_failure_count",
                               "Allocations that were refused because they could not be aligned.")
      .add(aligned.numa_node_failed, {{"boundary", "numa_node"}, {"scope", scope}})
      .add(aligned.physical_cpu_failed, {{"boundary", "physical_cpu"}, {"scope", "container"}})
      .append_to(families);
  const CpuSet pool = view.shared - view.reserved;
  MetricFamilyBuilder::gauge("kubelet_cpu_manager_shared_pool_size_millicores",
                             "Size of the shared pool in millicores, without reserved CPUs.")
      .add(pool.size() * 1000.0)
      .append_to(families);
  MetricFamilyBuilder::gauge("kubelet_cpu_manager_exclusive_cpu_allocation_count",
                             "Exclusively allocated CPUs.")
      .add(static_cast<double>(exclusive(view).size()))
      .append_to(families);
}

// The kubelet's memory_manager metrics, and headroom's own.
void add_memory_families(const MemoryView& view, Families& families) {
  MetricFamilyBuilder::counter("kubelet_memory_manager_pinning_requests_total",
                               "Containers for which memory of NUMA nodes was requested.")
      .add(view.pinning_requests)
      .append_to(families);
  MetricFamilyBuilder::counter("kubelet_memory_manager_pinning_errors_total",
                               "Containers for which memory of NUMA nodes could not be allocated.")
      .add(view.pinning_errors)
      .append_to(families);
  auto allocatable = MetricFamilyBuilder::gauge("headroom_numa_memory_allocatable_bytes",
                                                "What pods can have of the NUMA node.");
  auto assigned = MetricFamilyBuilder::gauge("headroom_numa_memory_assigned_bytes",
                                             "What containers have of the NUMA node.");
  for (const auto& [id, node] : view.nodes)
    for (const auto& [resource, table] : node.tables) {
      const Labels at = labels({{"numa_node", std::to_string(id)}, {"resource", resource}});
      allocatable.add(static_cast<double>(table.allocatable.count), at);
      assigned.add(static_cast<double>(table.reserved.count), at);
    }
  allocatable.append_to(families);
  assigned.append_to(families);
  MetricFamilyBuilder::counter("headroom_cpuset_mems_writes_total", "Writes of cpuset.mems.")
      .add(view.writes)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_cpuset_mems_write_failures_total",
                               "Writes of cpuset.mems that failed or had no effect.")
      .add(view.failed)
      .append_to(families);
  MetricFamilyBuilder::counter(
      "headroom_cpuset_mems_repairs_total",
      "Values of cpuset.mems that another program had changed and headroomd restored.")
      .add(view.repaired)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_memory_state_file_stale",
                             "1 if the memory state file could not be written and is out of date.")
      .add(view.unsaved ? 1.0 : 0.0)
      .append_to(families);
}

}  // namespace

void add_cpu_families(const CpusView& view, Families& families) {
  add_kubelet_families(view, families);
  add_pool_families(view, families);
  add_numa_families(view, families);
  add_container_families(view, families);
  if (view.memory) add_memory_families(*view.memory, families);
  const auto refused =
      std::ranges::count_if(view.containers, [](const ContainerCpuView& container_cpus) {
        return container_cpus.cpus.size() < container_cpus.wanted;
      });
  MetricFamilyBuilder::gauge("headroom_containers_without_exclusive_cpus",
                             "Containers that have fewer exclusive CPUs than requested.")
      .add(static_cast<double>(refused))
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_cpuset_writes_total", "Writes of cpuset.cpus.")
      .add(view.writes)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_cpuset_write_failures_total",
                               "Writes of cpuset.cpus that failed or had no effect.")
      .add(view.failed)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_cpuset_repairs_total",
                               "CPU sets that another program had changed and headroomd restored.")
      .add(view.repaired)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_cpu_state_file_stale",
                             "1 if the CPU state file could not be written and is out of date.")
      .add(view.unsaved ? 1.0 : 0.0)
      .append_to(families);
}

}  // namespace headroom::report
