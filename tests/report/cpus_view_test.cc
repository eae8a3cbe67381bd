// SPDX-License-Identifier: Apache-2.0
// Who has which CPUs, as metrics: by NUMA node and by container.
#include "report/view/cpus_view.h"

#include "report/metrics/metrics_cpus.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

// Four CPUs on two NUMA nodes; one container has a CPU of each, another has none.
CpusView two_nodes() {
  CpusView view;
  for (Cpu cpu = 0; cpu < 4; ++cpu)
    view.places.push_back({.cpu = cpu, .core = cpu, .socket = cpu / 2, .numa = cpu / 2});
  view.containers.push_back(
      {.pod_namespace = "default", .pod = "web", .uid = "u", .container = "c"});
  view.containers.front().cpus = *CpuSet::parse("1-2");
  view.containers.push_back(
      {.pod_namespace = "default", .pod = "db", .uid = "v", .container = "c"});
  view.containers.back().wanted = 2;
  return view;
}

// The values of a family, in the order of its samples; none: it is not exported.
std::vector<double> values(std::string_view family) {
  Families families;
  add_cpu_families(two_nodes(), families);
  std::vector<double> values;
  for (const auto& each : families)
    if (each.name == family)
      for (const auto& metric : each.metric)
        values.push_back(metric.gauge.value);
  return values;
}

TEST(CpusView, CountsAllocatedCpusOfEachNumaNode) {
  EXPECT_EQ(values("headroom_numa_cpus"), (std::vector<double>{2, 2}));
  EXPECT_EQ(values("kubelet_cpu_manager_allocation_per_numa"), (std::vector<double>{1, 1}));
}

TEST(CpusView, CountsTheNumaNodesOfAContainer) {
  EXPECT_EQ(values("headroom_container_exclusive_cpus"), (std::vector<double>{2, 0}));
  EXPECT_EQ(values("headroom_container_numa_nodes"), (std::vector<double>{2, 0}));
  EXPECT_EQ(values("headroom_containers_without_exclusive_cpus"), (std::vector<double>{1}));
}

TEST(MemoryView, CountsTheAssignedMemoryOfEachNumaNode) {
  CpusView view = two_nodes();
  Families without;
  add_cpu_families(view, without);
  for (const auto& family : without)
    EXPECT_EQ(family.name.find("memory"), std::string::npos) << family.name;

  view.memory.emplace();
  view.memory->pinning_requests = 3;
  view.memory->pinning_errors = 1;
  view.memory->nodes[0].tables["memory"] = {.allocatable = Bytes{400}, .reserved = Bytes{300}};
  view.memory->nodes[1].tables["hugepages-2Mi"] = {.allocatable = Bytes{200}};
  Families families;
  add_cpu_families(view, families);
  std::map<std::string, std::vector<double>> exported;
  for (const auto& family : families)
    for (const auto& metric : family.metric)
      exported[family.name].push_back(metric.gauge.value + metric.counter.value);
  EXPECT_EQ(exported["headroom_numa_memory_allocatable_bytes"], (std::vector<double>{400, 200}));
  EXPECT_EQ(exported["headroom_numa_memory_assigned_bytes"], (std::vector<double>{300, 0}));
  EXPECT_EQ(exported["kubelet_memory_manager_pinning_requests_total"], std::vector<double>{3});
  EXPECT_EQ(exported["kubelet_memory_manager_pinning_errors_total"], std::vector<double>{1});
}

TEST(CpusView, ComparesThePoolWithTheRequestsOfItsPods) {
  EXPECT_TRUE(values("headroom_shared_pool_cpus").empty()) << "nothing is pinned: there is none";
  CpusView view = two_nodes();
  view.pool = SharedPool{{1900}, {2500}};
  view.pool_unknown = 3;
  Families families;
  add_cpu_families(view, families);
  std::map<std::string, double> exported;
  for (const auto& family : families)
    if (family.name.starts_with("headroom_shared_pool"))
      exported[family.name] = family.metric.front().gauge.value;
  EXPECT_EQ(exported, (std::map<std::string, double>{{"headroom_shared_pool_cpus", 1.9},
                                                     {"headroom_shared_pool_requested_cpus", 2.5},
                                                     {"headroom_shared_pool_unknown_pods", 3},
                                                     {"headroom_shared_pool_refusals_total", 0}}));
}

}  // namespace
}  // namespace headroom::report
