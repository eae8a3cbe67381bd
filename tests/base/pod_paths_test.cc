// SPDX-License-Identifier: Apache-2.0
// Where a pod's files are, and what no name may lead to.
#include "base/pod_paths.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

Pod pod() {
  Pod pod;
  pod.uid = "u-1";
  pod.name = "web";
  pod.pod_namespace = "shop";
  return pod;
}

Volume volume(Volume::Kind kind, std::string name = "data") {
  Volume volume;
  volume.kind = kind;
  volume.name = std::move(name);
  return volume;
}

TEST(PodPaths, AreTheKubeletsUnlessConfigured) {
  const PodPaths paths;
  EXPECT_EQ(volume_path(paths, pod(), volume(Volume::Kind::kEmptyDir)),
            "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~empty-dir/data");
  EXPECT_EQ(logs_path(paths, pod(), "app"), "/var/log/pods/shop_web_u-1/app");
  EXPECT_EQ(rootfs_path(paths, pod(), "app"), "") << "asked of the running container";
  Volume host = volume(Volume::Kind::kHostPath);
  host.host_path = "/srv/x";
  EXPECT_EQ(volume_path(paths, pod(), host), "/srv/x");
}

TEST(PodPaths, APodsOwnPatternWins) {
  Pod own = pod();
  own.logs_path = "/srv/{name}/log/{container}";
  own.rootfs_path = "/var/lib/machines/{container}";
  EXPECT_EQ(logs_path({}, own, "app"), "/srv/web/log/app");
  EXPECT_EQ(rootfs_path({}, own, "app"), "/var/lib/machines/app");
}

TEST(PodPaths, NoNameLeadsElsewhere) {
  for (const char* name : {"..", ".", "", "a/b", "../../etc"})
    EXPECT_EQ(volume_path({}, pod(), volume(Volume::Kind::kEmptyDir, name)), "") << name;
  EXPECT_EQ(volume_path({}, pod(), volume(Volume::Kind::kOther)), "") << "no plugin, no path";
}

TEST(PodPaths, PatternsAreCheckedWhenRead) {
  for (const char* good : {"/a", "/a/{uid}/{volume}", "/{namespace}_{name}/{container}.{plugin}"})
    EXPECT_EQ(pattern_error(good), "") << good;
  for (const char* bad : {"", "a/{uid}", "/a/../b", "/a/..", "/{pod}", "/{uid"})
    EXPECT_NE(pattern_error(bad), "") << bad;
}

}  // namespace
}  // namespace headroom
