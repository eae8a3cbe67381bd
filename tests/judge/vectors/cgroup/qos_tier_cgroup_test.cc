// SPDX-License-Identifier: Apache-2.0
// What the cgroups of all pods and of the QoS classes get (Kubernetes 1.36).
#include "judge/allocatable/node_cgroups.h"
#include "judge/resources/pod_resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

using Json = nlohmann::json;
using Role = NodeCgroup::Role;

QosTierSums sums_of(const std::vector<Pod>& pods) {
  std::vector<const Pod*> active;
  for (const Pod& pod : pods)
    active.push_back(&pod);
  return qos_tier_sums(active);
}

class QosTierCgroupVectors : public VectorTest {
 protected:
  bool gate(const char* name) const { return line().at("gates").at(name).get<bool>(); }
  bool tiered() const {
    return gate("MemoryQoS") && line().at("memory_reservation_policy") == "TieredReservation";
  }
  PodSizing sizing() const {
    PodSizing sizing;
    if (gate("MemoryQoS"))
      sizing.memory_qos.reservation =
          tiered() ? MemoryQos::Reservation::kTiered : MemoryQos::Reservation::kNone;
    return sizing;
  }
  void check(Role role, const CgroupValues& values, const Json& expected) const {
    SCOPED_TRACE(name(role));
    const auto amount = [](const std::optional<Limit<Bytes>>& limit) -> Json {
      return limit && limit->most() ? Json(limit->most()->count) : Json();
    };
    if (expected.contains("cpu_weight"))
      EXPECT_EQ(values.cpu_weight->value, expected.at("cpu_weight").get<std::uint32_t>());
    // Upstream leaves 0 and what is below it unlimited, or tries to write a negative number.
    Json limit = expected.value("memory_limit", Json());
    if (limit.is_number() && limit.get<std::int64_t>() < 0) limit = Json();
    if (role != Role::kPods) EXPECT_EQ(amount(values.memory_max), limit);
    const Json unified = expected.value("unified", Json::object());
    const auto file = [&](const char* key) -> Json {
      return unified.contains(key) ? Json(std::stoll(unified.at(key).get<std::string>())) : Json();
    };
    // headroom promises no more than there is.
    const auto room = [&](std::int64_t bytes) {
      return std::min(bytes, line().value("node_allocatable_memory", bytes));
    };
    if (role != Role::kPods || !tiered()) {
      EXPECT_EQ(amount(values.memory_min), file("memory.min"));
      const Json low = file("memory.low");
      EXPECT_EQ(amount(values.memory_low), low.is_null() ? low : Json(room(low)));
      return;
    }
    // Upstream adds both classes to the memory.min of all pods. headroom makes the Burstable part a
    // memory.low there too: below a parent without memory.low the class's own has no effect, and
    // what is memory.min the kernel kills for rather than reclaim.
    const std::int64_t burstable = std::stoll(
        line().at("expected").at("burstable").at("unified").at("memory.low").get<std::string>());
    EXPECT_EQ(amount(values.memory_min), room(file("memory.min").get<std::int64_t>() - burstable));
    EXPECT_EQ(amount(values.memory_low), room(burstable));
  }
};

TEST_P(QosTierCgroupVectors, Agree) {
  std::vector<Pod> pods;
  for (const Json& each : line().at("pods")) {
    pods.push_back(pod_of(each, gate("PodLevelResources")));
    Pod& pod = pods.back();
    // An empty one makes a pod BestEffort in 1.36, and by its containers in a later release.
    if (pod.pod_level && !has_pod_level_resources(pod)) pod.declared_qos = QosClass::kBestEffort;
    EXPECT_EQ(name(qos_class(pod)), line().at("qos")[pods.size() - 1]);
  }
  QosTierSums sums = sums_of(pods);
  // The sums of memory count spec.resources in 1.36 whatever the gate says.
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const QosClass qos = qos_class(pods[i]);
    pods[i] = pod_of(line().at("pods")[i], true);
    pods[i].declared_qos = qos;
  }
  const QosTierSums ungated = sums_of(pods);
  sums.burstable_memory = ungated.burstable_memory;
  sums.guaranteed_memory = ungated.guaranteed_memory;
  AllocatablePolicy policy;
  policy.kubepods = kubepods_name("/").value();
  NodeAllocatable node;
  if (line().contains("qos_reserved_memory_percent")) {
    policy.qos_reserved_memory = line().at("qos_reserved_memory_percent").get<int>();
    node.pods_limit.memory = Bytes{line().at("node_allocatable_memory").get<std::int64_t>()};
  }
  for (const NodeCgroup& cgroup : node_cgroups(policy, {}, node, sizing(), sums))
    check(cgroup.role, cgroup.values, line().at("expected").at(std::string(name(cgroup.role))));
}

INSTANTIATE_TEST_SUITE_P(Lines, QosTierCgroupVectors,
                         testing::ValuesIn(lines_of("qos_tier_cgroup_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
