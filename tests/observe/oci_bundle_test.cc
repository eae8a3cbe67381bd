// SPDX-License-Identifier: Apache-2.0
// Descriptions as containerd, CRI-O and docker leave them, and as none should.
#include "observe/pod/oci_bundle.h"

#include "config/temp_dir.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

const std::string kId(64, 'a');

class OciBundle : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const auto file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<ContainerIdentity> find() { return find_container(kId, root_.path()); }

  test::TempDir root_;
};

TEST_F(OciBundle, ContainerdTellsNamesAndImage) {
  put("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json",
      R"({"ociVersion": "1.1.0", "annotations": {
        "io.kubernetes.cri.container-name": "app",
        "io.kubernetes.cri.container-type": "container",
        "io.kubernetes.cri.image-name": "registry.example/app:1",
        "io.kubernetes.cri.sandbox-name": "web-0",
        "io.kubernetes.cri.sandbox-namespace": "shop"}})");
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->container, "app");
  EXPECT_EQ(found->image, "registry.example/app:1");
  EXPECT_EQ(found->pod, "web-0");
  EXPECT_EQ(found->pod_namespace, "shop");
  EXPECT_FALSE(found->sandbox);
}

TEST_F(OciBundle, CrioTellsTheSandboxApart) {
  put("run/containers/storage/overlay-containers/" + kId + "/userdata/config.json",
      R"({"annotations": {
        "io.kubernetes.container.name": "POD",
        "io.kubernetes.cri-o.ContainerType": "sandbox",
        "io.kubernetes.pod.name": "web-0",
        "io.kubernetes.pod.namespace": "shop"}})");
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sandbox);
  EXPECT_EQ(found->container, "");
  EXPECT_EQ(found->pod, "web-0");
}

TEST_F(OciBundle, DockerTellsItsOwnName) {
  put("var/lib/docker/containers/" + kId + "/config.v2.json",
      R"({"Name": "/db", "Config": {"Image": "postgres:16", "Labels": {}}})");
  const auto found = find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "db");
  EXPECT_EQ(found->image, "postgres:16");
  EXPECT_EQ(found->container, "");
}

TEST_F(OciBundle, NothingOfWhatIsNotADescription) {
  const std::string path =
      "run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json";
  EXPECT_FALSE(find()) << "there is none";
  for (const char* text : {"", "{", "[]", "null", "\"annotations\""}) {
    put(path, text);
    EXPECT_FALSE(find()) << text;
  }
  put(path, R"({"annotations": {"io.kubernetes.cri.container-name": 7}})");
  ASSERT_TRUE(find());
  EXPECT_EQ(find()->container, "");
}

TEST_F(OciBundle, AnIdLeadsNowhereElse) {
  put("etc/config.json", R"({"annotations": {"io.kubernetes.cri.container-name": "app"}})");
  EXPECT_FALSE(find_container("../../../../../etc", root_.path()));
  EXPECT_FALSE(find_container("", root_.path()));
}

}  // namespace
}  // namespace headroom::observe
