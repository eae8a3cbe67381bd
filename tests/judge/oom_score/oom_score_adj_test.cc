// SPDX-License-Identifier: Apache-2.0
// oom_score_adj: the classes' constants, and a Burstable score that stays between them.
#include "judge/oom/oom_score.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

Container asking(const char* memory) {
  return {.name = {}, .requests = {{"memory", q(memory)}}, .limits = {}};
}

Pod burstable(const char* memory) {
  Pod pod;
  pod.containers = {asking(memory)};
  return pod;
}

int score_of_first(const Pod& pod, Bytes capacity) {
  return oom_score_adj(pod, pod.containers.front(), capacity);
}

TEST(OomScore, DependsOnTheQosClass) {
  Pod pod = burstable("1Gi");
  pod.declared_qos = QosClass::kGuaranteed;
  EXPECT_EQ(score_of_first(pod, 4_GiB), -997);
  pod.declared_qos = QosClass::kBestEffort;
  EXPECT_EQ(score_of_first(pod, 4_GiB), 1000);
  pod.declared_qos = QosClass::kBurstable;
  EXPECT_EQ(score_of_first(pod, 4_GiB), 750);
}

TEST(OomScore, OnlyNodeCriticalPodsAreProtected) {
  struct Case {
    const char* name;
    const char* priority_class;
    std::int32_t priority;
    bool is_static;
    int score;
  };
  for (const Case& c :
       {Case{"node_critical", "system-node-critical", 2'000'001'000, false, -997},
        Case{"a_static_pod_that_says_so", "system-node-critical", 0, true, -997},
        Case{"the_name_alone_is_not_enough", "system-node-critical", 0, false, 750},
        Case{"cluster_critical_gets_nothing", "system-cluster-critical", 2'000'000'000, false, 750},
        Case{"static_gets_nothing", "", 0, true, 750}}) {
    Pod pod = burstable("1Gi");
    pod.priority_class = c.priority_class;
    pod.priority = c.priority;
    pod.is_static = c.is_static;
    EXPECT_EQ(score_of_first(pod, 4_GiB), c.score) << c.name;
  }
}

TEST(OomScore, OfBurstableIsBetweenTheOtherClasses) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const char* const request : {"1", "100m", "64Mi", "4Gi", "1Ti", "8Ei"})
    for (const Bytes capacity : {1_B, 64_MiB, 4_GiB, 1024_GiB, Bytes{kMax}}) {
      Pod pod = burstable(request);
      pod.pod_level = asking("1");  // less than its container: a negative share
      for (const Pod& each : {burstable(request), pod}) {
        EXPECT_GE(score_of_first(each, capacity), 3) << request << " of " << capacity.count;
        EXPECT_LE(score_of_first(each, capacity), 999) << request << " of " << capacity.count;
      }
    }
}

TEST(OomScore, ASidecarIsProtectedLikeTheSmallestContainer) {
  Pod pod;
  pod.containers = {asking("1Gi"), asking("2Gi")};
  pod.init_containers = {asking("64Mi")};
  pod.init_containers.front().sidecar = true;
  EXPECT_EQ(oom_score_adj(pod, pod.init_containers.front(), 4_GiB), 750);
  pod.init_containers.front().sidecar = false;
  EXPECT_EQ(oom_score_adj(pod, pod.init_containers.front(), 4_GiB), 985);
}

}  // namespace
}  // namespace headroom
