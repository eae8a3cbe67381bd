// SPDX-License-Identifier: Apache-2.0
// The manifest that command-line options become, and where it goes.
#include "ctl/run/manifest_from_options.h"

#include "ctl/run/pod_units.h"
#include "manifest/manifest_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

using Lines = std::vector<std::string>;
constexpr const char* kUid = "0b1e5a4e-1111-4222-8333-444455556666";

Pod pod_of(const PodOptions& options) {
  const auto text = manifest_from_options(options, kUid);
  EXPECT_TRUE(text);
  auto manifests = observe::parse_manifests(text.value_or(""), "words");
  EXPECT_TRUE(manifests.diagnostics.empty()) << to_string(manifests.diagnostics.front());
  return manifests.pods.at(0);
}

TEST(ManifestFromOptions, MakesAManifestOfTheOptions) {
  const Pod pod = pod_of({.name = "web",
                          .requests = {"cpu=500m", "memory=256Mi,ephemeral-storage=1Gi"},
                          .limits = {"memory=512Mi"},
                          .priority = 1000,
                          .grace_seconds = 5,
                          .command = {"sleep", "1"}});
  EXPECT_EQ(pod.name, "web");
  EXPECT_EQ(pod.pod_namespace, "default");
  EXPECT_EQ(pod.uid, kUid);
  EXPECT_EQ(pod.priority, 1000);
  const Container& container = pod.containers.at(0);
  EXPECT_EQ(container.requests.at("cpu").milli_value(), 500);
  EXPECT_EQ(container.requests.at("memory").value(), (256_MiB).count);
  EXPECT_EQ(container.limits.at("memory").value(), (512_MiB).count);
}

TEST(ManifestFromOptions, ReportsAllErrors) {
  const auto text =
      manifest_from_options({.name = "A b", .pod_namespace = "", .requests = {"memory"}}, kUid);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error(),
            (Lines{"--name: expected up to 63 lower-case letters, digits and dashes, such as "
                   "web-1, found \"A b\"",
                   "--namespace: expected up to 63 lower-case letters, digits and dashes, such as "
                   "web-1, found \"\"",
                   "--request: expected name=amount such as memory=256Mi, found \"memory\"",
                   "expected a command after --"}));
}

const NodeMemory kNode{
    .capacity = 1_GiB, .swap = 512_MiB, .allocatable = 900_MiB, .huge_page_sizes = {}};

TEST(PodUnitsTest, AreBelowTheQosSliceWithTheirValues) {
  const Pod pod = pod_of({.name = "web",
                          .requests = {"cpu=500m,memory=64Mi"},
                          .limits = {"memory=128Mi"},
                          .command = {"x"}});
  config::Config config;
  const auto pod_units = make_pod_units(pod, config, kNode);
  ASSERT_TRUE(pod_units);
  EXPECT_EQ(pod_units->slice, "kubepods-burstable-pod0b1e5a4e_1111_4222_8333_444455556666.slice");
  EXPECT_EQ(pod_units->path, "/kubepods.slice/kubepods-burstable.slice/" + pod_units->slice);
  EXPECT_EQ(pod_units->values, (CgroupValues{.cpu_weight = CpuWeight{20}, .memory_max = 128_MiB}));
  ASSERT_EQ(pod_units->containers.size(), 1u);
  const ContainerUnit& container = pod_units->containers[0];
  EXPECT_EQ(container.unit, "headroom-run-default.web.service");
  EXPECT_EQ(container.values, (CgroupValues{.cpu_weight = CpuWeight{20},
                                            .memory_max = 128_MiB,
                                            .memory_swap_max = Bytes{0},
                                            .memory_oom_group = true}));
  EXPECT_EQ(container.oom_score_adj, 938);
  EXPECT_EQ(pod_units->manifest, "/run/headroom/manifests/default.web.yaml");
  config.pods_cgroup = "kubepods";
  EXPECT_FALSE(make_pod_units(pod, config, kNode));
}

TEST(PodUnitsTest, IsSizedAsTheConfigurationSays) {
  const Pod pod = pod_of({.name = "web",
                          .requests = {"cpu=1,memory=64Mi"},
                          .limits = {"cpu=2,memory=128Mi"},
                          .command = {"x"}});
  config::Config config;
  config.sizing = {
      .cpu_period = std::chrono::milliseconds(20),
      .pids_limit = Tasks{99},
      .memory_qos = {.reservation = MemoryQos::Reservation::kTiered, .throttling_factor = 0.5},
      .swap = SwapBehavior::kLimitedSwap,
      .oom_kills_group = false};
  const auto pod_units = make_pod_units(pod, config, kNode);
  ASSERT_TRUE(pod_units);
  const CpuMax quota{.quota = Microseconds(40'000), .period = std::chrono::milliseconds(20)};
  EXPECT_EQ(pod_units->values, (CgroupValues{.cpu_weight = CpuWeight{39},
                                             .cpu_max = quota,
                                             .memory_low = 64_MiB,
                                             .memory_max = 128_MiB,
                                             .pids_max = Tasks{99}}));
  EXPECT_EQ(pod_units->containers[0].values, (CgroupValues{.cpu_weight = CpuWeight{39},
                                                           .cpu_max = quota,
                                                           .memory_low = 64_MiB,
                                                           .memory_high = 96_MiB,
                                                           .memory_max = 128_MiB,
                                                           .memory_swap_max = 32_MiB}));
}

TEST(PodUnitsTest, ExclusiveCpusHaveNoQuota) {
  const Pod pod = pod_of({.name = "bank", .limits = {"cpu=2,memory=64Mi"}, .command = {"x"}});
  config::Config config;
  EXPECT_TRUE(make_pod_units(pod, config, kNode)->values.cpu_max);
  config.cpus.mode = config::CpusConfig::Mode::kEnforce;
  config.cpus.policy = config::CpusConfig::Policy::kStatic;
  const auto pod_units = make_pod_units(pod, config, kNode);
  EXPECT_EQ(pod_units->values.cpu_max, CpuMax{});
  EXPECT_EQ(pod_units->containers[0].values.cpu_max, CpuMax{});
}

// As a kubelet: only what is shared keeps its quota, and the pod unless nothing is shared.
TEST(PodUnitsTest, InAPodWithResourcesOfItsOwnOnlySharedCpusHaveAQuota) {
  config::Config config;
  config.cpus.mode = config::CpusConfig::Mode::kEnforce;
  config.cpus.policy = config::CpusConfig::Policy::kStatic;
  config.cpus.pod_level_managers = true;
  config.cpus.topology_policy = TopologyPolicy::kRestricted;
  config.cpus.topology_scope = TopologyScope::kPod;
  Pod pod = pod_of({.name = "bank", .limits = {"cpu=1,memory=64Mi"}, .command = {"x"}});
  pod.pod_level = pod.containers[0];
  for (ResourceList* const amounts : {&pod.pod_level->requests, &pod.pod_level->limits})
    (*amounts)["cpu"] = Quantity::of(2);
  EXPECT_EQ(make_pod_units(pod, config, kNode)->values.cpu_max, CpuMax{});
  pod.containers.push_back({.name = "any"});
  const auto pod_units = make_pod_units(pod, config, kNode);
  EXPECT_NE(pod_units->values.cpu_max, CpuMax{});
  EXPECT_EQ(pod_units->containers[0].values.cpu_max, CpuMax{});
  config.cpus.pod_level_managers = false;
  EXPECT_NE(make_pod_units(pod, config, kNode)->containers[0].values.cpu_max, CpuMax{});
}

}  // namespace
}  // namespace headroom::ctl
