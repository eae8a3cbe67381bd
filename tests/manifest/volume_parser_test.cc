// SPDX-License-Identifier: Apache-2.0
// Volumes, pre-stop commands and places, as a manifest says them.
#include "manifest/manifest_reader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using Kind = Volume::Kind;

TEST(Volumes, AreReadAsFarAsTheyCount) {
  const Manifests manifests = parse_manifests(R"(apiVersion: v1
kind: Pod
metadata:
  name: db
  annotations:
    headroom.io/rootfs: /srv/{name}/{container}
    headroom.io/logs: /srv/log/{name}/{container}
spec:
  volumes:
  - {name: scratch, emptyDir: {sizeLimit: 1Gi}}
  - {name: plain, emptyDir: }
  - {name: fast, emptyDir: {medium: Memory}}
  - {name: host, hostPath: {path: /srv/data}}
  - {name: settings, configMap: {name: x}}
  - {name: token, projected: {sources: []}}
  containers:
  - name: app
    lifecycle: {preStop: {exec: {command: [/bin/flush, --all]}}}
  - name: web
    lifecycle: {preStop: {httpGet: {port: 80}}}
)",
                                              "f");
  ASSERT_TRUE(manifests.diagnostics.empty()) << to_string(manifests.diagnostics.front());
  const Pod& pod = manifests.pods.at(0);
  ASSERT_EQ(pod.volumes.size(), 6u);
  EXPECT_EQ(pod.volumes[0].kind, Kind::kEmptyDir);
  EXPECT_EQ(pod.volumes[0].size_limit->canonical(), "1Gi");
  EXPECT_EQ(pod.volumes[1].kind, Kind::kEmptyDir);
  EXPECT_FALSE(pod.volumes[1].size_limit);
  EXPECT_TRUE(pod.volumes[2].in_memory);
  EXPECT_EQ(pod.volumes[3].kind, Kind::kHostPath);
  EXPECT_EQ(pod.volumes[3].host_path, "/srv/data");
  EXPECT_EQ(pod.volumes[4].kind, Kind::kConfigMap);
  EXPECT_EQ(pod.volumes[5].kind, Kind::kOther);
  EXPECT_EQ(pod.containers[0].pre_stop, (std::vector<std::string>{"/bin/flush", "--all"}));
  EXPECT_TRUE(pod.containers[1].pre_stop.empty());
  EXPECT_EQ(pod.rootfs_path, "/srv/{name}/{container}");
  EXPECT_EQ(pod.logs_path, "/srv/log/{name}/{container}");
}

TEST(Volumes, MistakesAreReportedWithTheirLines) {
  const Manifests manifests = parse_manifests(R"(apiVersion: v1
kind: Pod
metadata:
  name: db
  annotations: {headroom.io/logs: relative}
spec:
  containers: [{name: app}]
  volumes:
  - {emptyDir: {}}
  - {name: ../../etc, emptyDir: {}}
  - {name: a, emptyDir: {medium: Disk}}
  - {name: b, emptyDir: {sizeLimit: -1Gi}}
  - {name: b, hostPath: {path: srv}}
  - {name: c, hostPath: {}}
)",
                                              "f");
  std::vector<int> lines;
  for (const auto& diagnostic : manifests.diagnostics)
    lines.push_back(diagnostic.line);
  EXPECT_EQ(lines, (std::vector<int>{5, 9, 10, 11, 12, 13, 13, 14}));
  EXPECT_TRUE(manifests.pods.empty());
}

}  // namespace
}  // namespace headroom::observe
