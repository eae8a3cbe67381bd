// SPDX-License-Identifier: Apache-2.0
// What a container's cgroup gets, and its oom_score_adj (Kubernetes 1.36).
#include "judge/allocatable/pod_sizing.h"
#include "judge/oom/oom_score.h"
#include "judge/resources/pod_resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace headroom::vectors {
namespace {

using Json = nlohmann::json;

bool gate(const Json& line, const char* name) {
  return line.at("gates").at(name).get<bool>();
}

std::optional<SwapBehavior> swap_of(const Json& line) {
  if (!line.at("swap_controller_available").get<bool>()) return std::nullopt;
  return line.at("memory_swap_behavior") == "LimitedSwap" ? SwapBehavior::kLimitedSwap
                                                          : SwapBehavior::kNoSwap;
}

PodSizing sizing_of(const Json& line) {
  PodSizing sizing{.weights = WeightFormula::kQuadratic,
                   .cpu_quota = line.at("cpu_cfs_quota").get<bool>(),
                   .swap = swap_of(line),
                   .oom_kills_group = line.at("single_process_oom_kill") == Json(false)};
  if (gate(line, "CustomCPUCFSQuotaPeriod"))
    sizing.cpu_period = Microseconds(line.at("cpu_cfs_quota_period_us").get<std::int64_t>());
  if (!gate(line, "MemoryQoS")) return sizing;
  const bool tiered = line.at("memory_reservation_policy") == "TieredReservation";
  sizing.memory_qos.reservation =
      tiered ? MemoryQos::Reservation::kTiered : MemoryQos::Reservation::kNone;
  if (const Json& factor = line.at("memory_throttling_factor"); !factor.is_null())
    sizing.memory_qos.throttling_factor = factor.get<double>();
  return sizing;
}

NodeMemory node_of(const Json& node) {
  return {.capacity = Bytes{node.at("memory_capacity").get<std::int64_t>()},
          .swap = Bytes{node.at("swap_capacity").get<std::int64_t>()},
          .allocatable = Bytes{node.at("allocatable_memory").get<std::int64_t>()},
          .huge_page_sizes = {2_MiB, 1_GiB}};
}

std::map<Bytes, Limit<Bytes>> hugetlb_of(const Json& pages) {
  static const std::map<std::string, Bytes> kSizes{{"2MB", 2_MiB}, {"1GB", 1_GiB}};
  std::map<Bytes, Limit<Bytes>> limits;
  for (const auto& [size, limit] : pages.items())
    limits.emplace(kSizes.at(size), Bytes{limit.get<std::int64_t>()});
  return limits;
}

std::optional<Limit<Bytes>> unified(const Json& expected, const char* file) {
  const Json none = Json::object();
  const Json& all = expected.contains("unified") ? expected.at("unified") : none;
  if (!all.contains(file)) return std::nullopt;
  return Bytes{std::stoll(all.at(file).get<std::string>())};
}

CgroupValues expected_values(const Json& expected) {
  CgroupValues values{.memory_min = unified(expected, "memory.min"),
                      .memory_low = unified(expected, "memory.low"),
                      .memory_high = unified(expected, "memory.high"),
                      .memory_swap_max = unified(expected, "memory.swap.max"),
                      .hugetlb_max = hugetlb_of(expected.at("hugepages"))};
  values.cpu_weight = CpuWeight{expected.at("cpu_weight_runtime").get<std::uint32_t>()};
  if (const auto quota = expected.at("cpu_quota").get<std::int64_t>(); quota != 0) {
    values.cpu_max = CpuMax{.period = Microseconds(expected.at("cpu_period").get<std::int64_t>())};
    if (quota > 0) values.cpu_max->quota = Microseconds(quota);
  }
  if (const auto limit = expected.at("memory_limit").get<std::int64_t>(); limit != 0)
    values.memory_max = Bytes{limit};
  if (unified(expected, "memory.oom.group")) values.memory_oom_group = true;
  return values;
}

// A quota of max, whatever its period, is what a cgroup starts with: upstream does not write it.
CgroupValues without_max(CgroupValues values) {
  if (values.cpu_max && values.cpu_max->quota.is_max()) values.cpu_max.reset();
  return values;
}

class ContainerCgroupVectors : public VectorTest {
 protected:
  Cpus cpus_of(const Container& container) const {
    if (!gate(line(), "DisableCPUQuotaWithExclusiveCPUs")) return Cpus::kShared;
    const Json exclusive = line().value("containers_with_exclusive_cpus", Json::array());
    return std::find(exclusive.begin(), exclusive.end(), container.name) == exclusive.end()
               ? Cpus::kShared
               : Cpus::kExclusive;
  }
  void check(const Pod& pod, const Container& container) const {
    SCOPED_TRACE(container.name);
    const Json& expected = line().at("expected").at(container.name);
    const NodeMemory node = node_of(line().at("node"));
    CgroupValues wanted = expected_values(expected);
    const CgroupValues values =
        container_cgroup(pod, container, sizing_of(line()), node, cpus_of(container));
    // Upstream computes memory.high without the pod's own limit, and so above memory.max.
    const auto own = container.limits.find("memory");
    if (values.memory_max && (own == container.limits.end() || own->second.is_zero())) {
      wanted.memory_high = values.memory_high;
      if (values.memory_high) EXPECT_LE(values.memory_high->most(), values.memory_max->most());
    }
    EXPECT_EQ(text_of(without_max(values)), text_of(without_max(wanted)));
    // Upstream lets a score go beyond what the kernel accepts.
    EXPECT_EQ(oom_score_adj(pod, container, node.capacity),
              std::min(expected.at("oom_score_adj").get<int>(),
                       999 + (qos_class(pod) == QosClass::kBestEffort)));
  }
};

TEST_P(ContainerCgroupVectors, Agree) {
  Pod pod = pod_of(line().at("pod"), gate(line(), "PodLevelResources"));
  // An empty one makes a pod BestEffort in 1.36, and by its containers in a later release.
  if (pod.pod_level && !has_pod_level_resources(pod)) pod.declared_qos = QosClass::kBestEffort;
  EXPECT_EQ(name(qos_class(pod)), text("qos"));
  for (const Container& container : pod.init_containers)
    check(pod, container);
  for (const Container& container : pod.containers)
    check(pod, container);
}

INSTANTIATE_TEST_SUITE_P(Lines, ContainerCgroupVectors,
                         testing::ValuesIn(lines_of("container_cgroup_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
