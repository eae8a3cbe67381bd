// SPDX-License-Identifier: Apache-2.0
// What pods request: for eviction, for cgroups; and which are critical.
#include "judge/resources/pod_resources.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

Container asking(const char* memory) {
  return {.name = {}, .requests = {{"memory", q(memory)}}, .limits = {{"memory", q(memory)}}};
}
Container sidecar(const char* memory) {
  Container container = asking(memory);
  container.sidecar = true;
  return container;
}

Pod pod(std::vector<Container> init, std::vector<Container> regular,
        std::optional<const char*> overhead = std::nullopt) {
  Pod made;
  made.init_containers = std::move(init);
  made.containers = std::move(regular);
  if (overhead) made.overhead = {{"memory", q(*overhead)}};
  return made;
}

TEST(PodSums, OfMemory) {
  struct Case {
    const char* says;
    Pod pod;
    const char* eviction;
    const char* cgroup_request;
    const char* cgroup_limit;
  };
  for (const Case& c :
       {Case{"regular_containers_add_up", pod({}, {asking("1Gi"), asking("2Gi")}), "3Gi", "3Gi",
             "3Gi"},
        Case{"an_init_container_is_a_floor", pod({asking("5Gi")}, {asking("1Gi")}), "5Gi", "5Gi",
             "5Gi"},
        Case{"a_sidecar_runs_beside_the_others", pod({sidecar("2Gi")}, {asking("3Gi")}), "5Gi",
             "5Gi", "5Gi"},
        Case{"an_init_container_runs_beside_the_sidecars_before_it",
             pod({sidecar("2Gi"), asking("6Gi"), sidecar("1Gi")}, {asking("3Gi")}), "8Gi", "8Gi",
             "8Gi"},
        Case{"but_not_beside_those_after_it", pod({asking("6Gi"), sidecar("2Gi")}, {asking("3Gi")}),
             "6Gi", "6Gi", "6Gi"},
        Case{"overhead_comes_on_top", pod({asking("4Gi")}, {asking("1Gi")}, "1Gi"), "5Gi", "5Gi",
             "5Gi"},
        Case{"overhead_alone_is_no_credit_to_eviction_and_no_limit", pod({}, {Container{}}, "1Gi"),
             "0", "1Gi", "0"},
        Case{"nothing_asked", pod({}, {Container{}}), "0", "0", "0"}}) {
    EXPECT_EQ(eviction_request(c.pod, "memory"), q(c.eviction)) << c.says;
    EXPECT_EQ(pod_requests(c.pod)["memory"], q(c.cgroup_request)) << c.says;
    EXPECT_EQ(pod_limits(c.pod)["memory"], q(c.cgroup_limit)) << c.says;
  }
}

TEST(PodSums, PodLevelResourcesOverrideContainers) {
  Pod both = pod({asking("9Gi")}, {asking("1Gi")}, "1Gi");
  both.containers[0].requests["ephemeral-storage"] = q("3Gi");
  both.pod_level = asking("4Gi");
  EXPECT_EQ(eviction_request(both, "memory"), q("5Gi"));
  EXPECT_EQ(eviction_request(both, "ephemeral-storage"), q("0")) << "as the kubelet of 1.36";
  EXPECT_EQ(pod_requests(both)["memory"], q("5Gi"));
  EXPECT_EQ(pod_limits(both)["memory"], q("5Gi"));
}

TEST(PodSums, EmptyPodLevelResourcesSayNothing) {
  Pod each = pod({}, {asking("1Gi")});
  each.pod_level.emplace();
  EXPECT_FALSE(has_pod_level_resources(each));
  EXPECT_EQ(eviction_request(each, "memory"), q("1Gi"));
  each.pod_level->limits["pid"] = q("100");
  EXPECT_FALSE(has_pod_level_resources(each)) << "a limit of PIDs is no resource of the pod's own";
}

TEST(PodSums, AnUnnamedResourceIsZero) {
  EXPECT_TRUE(eviction_request(pod({}, {asking("1Gi")}), "inodes").is_zero());
}

TEST(IsCritical, ByBeingStaticOrByPriority) {
  struct Case {
    const char* says;
    bool is_static;
    std::int32_t priority;
    bool critical;
  };
  for (const Case& c : {Case{"an_ordinary_pod", false, 0, false},
                        Case{"the_highest_a_user_may_give", false, 1'000'000'000, false},
                        Case{"one_below_system_critical", false, 1'999'999'999, false},
                        Case{"system_cluster_critical", false, 2'000'000'000, true},
                        Case{"system_node_critical", false, 2'000'001'000, true},
                        Case{"static_whatever_its_priority", true, -5, true}}) {
    Pod each;
    each.is_static = c.is_static;
    each.priority = c.priority;
    EXPECT_EQ(is_critical(each), c.critical) << c.says;
  }
}

}  // namespace
}  // namespace headroom
