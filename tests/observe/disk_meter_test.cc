// SPDX-License-Identifier: Apache-2.0
// The measuring thread: who is measured, when, and of what.
#include "observe/node/disk_meter.h"

#include "config/temp_dir.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TempDir;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::shared_ptr<const Pod> pod_with_volumes(const std::string& uid) {
  auto pod = std::make_shared<Pod>();
  pod->uid = uid;
  pod->name = uid;
  Container app;
  app.name = "app";
  pod->containers = {app};
  Volume data;
  data.name = "data";
  data.kind = Volume::Kind::kEmptyDir;
  Volume fast;
  fast.name = "fast";
  fast.kind = Volume::Kind::kEmptyDir;
  fast.in_memory = true;
  Volume token;
  token.name = "token";
  pod->volumes = {data, fast, token};
  return pod;
}

struct World {
  TempDir dir;
  DiskMeterOptions options{.paths = {.volumes = dir.path() / "pods/{uid}/{plugin}/{volume}",
                                     .logs = dir.path() / "logs/{name}/{container}",
                                     .rootfs = ""}};
  void fill(const std::string& file, std::size_t size) {
    fs::create_directories((dir.path() / file).parent_path());
    dir.write(file, std::string(size, 'x'));
  }
  DiskUsage measure(const DiskTarget& target, std::atomic<std::uint64_t>& failed) const {
    WritableLayers layers;
    return observe::measure(target, layers, options, {}, {}, failed);
  }
};

std::vector<DiskMeter::Measured> wait_for(DiskMeter& meter) {
  for (int i = 0; i < 1000; ++i) {
    auto measured = meter.take();
    if (!measured.empty()) return measured;
    std::this_thread::sleep_for(5ms);
  }
  return {};
}

TEST(DiskMeasure, TellsThePartsApart) {
  World world;
  world.fill("pods/u/empty-dir/data/file", 100'000);
  world.fill("pods/u/empty-dir/fast/file", 100'000);
  world.fill("logs/u/app/0.log", 50'000);
  std::atomic<std::uint64_t> failed{0};
  const DiskUsage usage =
      world.measure({.pod = pod_with_volumes("u"), .cgroup = {}, .containers = {}}, failed);
  ASSERT_EQ(usage.volumes.size(), 2u) << "what the kubelet counts nowhere is not measured";
  EXPECT_EQ(usage.volumes[0].name, "data");
  EXPECT_TRUE(usage.volumes[0].ranked && usage.volumes[0].counted);
  EXPECT_GE(usage.volumes[0].usage.used->count, 100'000);
  EXPECT_FALSE(usage.volumes[1].ranked || usage.volumes[1].counted) << "memory is no disk";
  ASSERT_EQ(usage.containers.size(), 1u);
  EXPECT_GE(usage.containers[0].logs.used->count, 50'000);
  EXPECT_FALSE(usage.containers[0].rootfs.used) << "where it is, is not known";
  EXPECT_EQ(failed, 0u);
}

TEST(DiskMeasure, FindsTheVolumesOfAnUndescribedPod) {
  World world;
  world.fill("pods/u/empty-dir/cache/file", 100'000);
  auto pod = std::make_shared<Pod>();
  pod->uid = "u";
  pod->source = PodSource::kCgroupTree;
  std::atomic<std::uint64_t> failed{0};
  const DiskUsage usage = world.measure({.pod = pod, .cgroup = {}, .containers = {}}, failed);
  ASSERT_EQ(usage.volumes.size(), 1u);
  EXPECT_EQ(usage.volumes[0].name, "cache");
}

TEST(DiskMeasure, HostPathsOnlyWhenAskedFor) {
  World world;
  world.fill("host/file", 100'000);
  auto pod = std::make_shared<Pod>();
  Volume host;
  host.name = "host";
  host.kind = Volume::Kind::kHostPath;
  host.host_path = world.dir.path() / "host";
  pod->volumes = {host};
  const DiskTarget target{.pod = pod, .cgroup = {}, .containers = {}};
  std::atomic<std::uint64_t> failed{0};
  EXPECT_TRUE(world.measure(target, failed).volumes.empty());
  world.options.host_paths = true;
  const auto usage = world.measure(target, failed);
  ASSERT_EQ(usage.volumes.size(), 1u);
  EXPECT_GE(usage.volumes[0].usage.used->count, 100'000);
}

TEST(DiskMeter, MeasuresANewPodAtOnceAndAgainWhenHurried) {
  World world;
  world.fill("pods/u/empty-dir/data/file", 100'000);
  DiskMeter meter(world.options);
  EXPECT_TRUE(meter.take().empty());
  meter.set_targets({{.pod = pod_with_volumes("u"), .cgroup = CgroupId{7}, .containers = {}}});
  const auto first = wait_for(meter);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].cgroup, CgroupId{7});
  world.fill("pods/u/empty-dir/data/more", 300'000);
  meter.measure_urgently();
  const auto second = wait_for(meter);  // the usual period is a minute
  ASSERT_EQ(second.size(), 1u);
  EXPECT_GE(second[0].usage->volumes[0].usage.used->count, 400'000);
  EXPECT_GT(second[0].usage->at, first[0].usage->at);
}

TEST(DiskMeter, EndsInTheMiddleOfASlowWalk) {
  World world;
  for (int i = 0; i < 1500; ++i)
    world.fill("pods/u/empty-dir/data/" + std::to_string(i), 0);
  world.options.rate = {10};
  const auto began = std::chrono::steady_clock::now();
  {
    DiskMeter meter(world.options);
    meter.set_targets({{.pod = pod_with_volumes("u"), .cgroup = CgroupId{7}, .containers = {}}});
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s) << "the walk alone takes two minutes";
}

}  // namespace
}  // namespace headroom::observe
