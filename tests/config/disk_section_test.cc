// SPDX-License-Identifier: Apache-2.0
// headroom.disk, headroom.reclaim and the other settings of evictions for disks.
#include "config/files.h"
#include "config/load/load.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace std::chrono_literals;
using test::load_text;
using test::said;
using Lines = std::vector<std::string>;

TEST(DiskSection, IsReadCompletely) {
  const auto config = load_text(R"(localStorageCapacityIsolation: false
headroom:
  evictStaticPods: culprit
  disk:
    nodefs: /srv
    imagefs: /images
    containerfs: /layers
    volumes: /srv/pods/{uid}/{volume}
    logs: /srv/logs/{name}/{container}
    rootfs: /srv/machines/{name}/{container}
    hostPaths: true
    measurePeriod: 30s
    walkRate: 1000
    removeEmptyDirs: false
  reclaim:
    containers: [/usr/bin/podman, container, prune, --force]
    images: [/usr/bin/podman, image, prune, --all, --force]
    timeout: 5m
    memoryLimit: 1Gi
    user: pruner
)");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->disk, (DiskConfig{.nodefs = "/srv",
                                      .imagefs = "/images",
                                      .containerfs = "/layers",
                                      .paths = {.volumes = "/srv/pods/{uid}/{volume}",
                                                .logs = "/srv/logs/{name}/{container}",
                                                .rootfs = "/srv/machines/{name}/{container}"},
                                      .host_paths = true,
                                      .measure_period = 30s,
                                      .walk_rate = 1000}));
  EXPECT_EQ(config->reclaim.containers.size(), 4u);
  EXPECT_EQ(config->reclaim.images.back(), "--force");
  EXPECT_EQ(config->reclaim.memory, 1u << 30);
  EXPECT_EQ(config->reclaim.user, "pruner");
  const Policy& policy = config->policy;
  EXPECT_TRUE(policy.can_reclaim_containers && policy.can_reclaim_images);
  EXPECT_EQ(policy.reclaim_timeout, 5min);
  EXPECT_TRUE(policy.evict_static_culprits);
  EXPECT_FALSE(policy.remove_empty_dirs || policy.local_storage_isolation);
}

TEST(DiskSection, DefaultsAreTheKubelets) {
  const auto config = load_text("headroom: {}\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->disk, DiskConfig{});
  EXPECT_FALSE(config->policy.can_reclaim_containers || config->policy.can_reclaim_images);
  EXPECT_EQ(config->reclaim.user, "") << "one of their own";
  EXPECT_TRUE(config->policy.remove_empty_dirs && config->policy.local_storage_isolation);
  EXPECT_FALSE(config->policy.evict_static_culprits);
}

TEST(DiskSection, AllErrorsAreReported) {
  EXPECT_EQ(
      said(load_text(R"(headroom:
  evictStaticPods: always
  disk:
    nodfs: /srv
    imagefs: images
    volumes: /srv/{pod}/{volume}
    logs: /var/log/{container}
    rootfs: /srv/{name}
    measurePeriod: 0s
    walkRate: 0
  reclaim:
    containers: []
    images: [podman, image, prune]
    timeout: -1s
    memoryLimit: 0
    user: ""
)")),
      (Lines{
          "4: headroom.evictStaticPods: expected never or culprit, found \"always\"",
          "6: unknown key headroom.disk.nodfs, did you mean nodefs?",
          "7: headroom.disk.imagefs: expected an absolute path, found \"images\"",
          "8: headroom.disk.volumes: unknown placeholder {pod}: there are {uid}, {namespace}, "
          "{name}, "
          "{container}, {volume} and {plugin}, found \"/srv/{pod}/{volume}\"",
          "9: headroom.disk.logs: expected {uid} or {name} in it, else all pods share a path",
          "10: headroom.disk.rootfs: expected {container} in it, else all of a pod's share a path",
          "11: headroom.disk.measurePeriod: must be more than zero",
          "12: headroom.disk.walkRate: expected a whole number from 1 to 9223372036854775807, "
          "found the number 0",
          "14: headroom.reclaim.containers: expected a command and its arguments, found an empty "
          "list",
          "15: headroom.reclaim.images: expected the command's absolute path first, found "
          "\"podman\"",
          "16: headroom.reclaim.timeout: must be more than zero",
          "17: headroom.reclaim.memoryLimit: must be more than zero bytes",
          "18: headroom.reclaim.user: must be the name of a user"}));
}

}  // namespace
}  // namespace headroom::config
