// SPDX-License-Identifier: Apache-2.0
// Who a cgroup is said to be, by manifests, by its place and by its runtime.
#include "report/metrics/exposition/scrape_body.h"
#include "report/sample.h"

#include <map>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

const std::string kApp(64, 'a'), kPause(64, 'b'), kDocker(64, 'c');

class Runtime final : public ContainerNames {
 public:
  const ContainerIdentity* find(std::string_view id) override {
    const auto found = known.find(id);
    return found == known.end() ? nullptr : &found->second;
  }
  std::map<std::string, ContainerIdentity, std::less<>> known{
      {kApp, {.container = "app", .image = "shop/app:1", .pod = "web-0", .pod_namespace = "shop"}},
      {kPause, {.image = "pause:3.9", .pod = "web-0", .pod_namespace = "shop", .sandbox = true}},
      {kDocker, {.name = "db", .image = "postgres:16"}}};
};

// A pod's slice with an app, its pause container and what the app made for itself; docker's
// container beside it.
class CgroupLabelsTest : public ::testing::Test {
 protected:
  CgroupTable table(std::shared_ptr<const Pod> pod) {
    const std::string slice = "/kubepods.slice/kubepods-podu.slice";
    const std::string scope = slice + "/cri-containerd-" + kApp + ".scope";
    names_.paths = {{1, slice},
                    {2, scope},
                    {3, slice + "/cri-containerd-" + kPause + ".scope"},
                    {4, scope + "/init.scope"},
                    {5, "/system.slice/docker-" + kDocker + ".scope"},
                    {6, "/system.slice"},
                    {7, slice + "/crio-conmon-" + kApp + ".scope"}};
    records_ = {full_record(1, 0), full_record(2, 1), full_record(3, 1), full_record(4, 2),
                full_record(5, 6), full_record(6, 0), full_record(7, 1)};
    readings_ = {{std::move(pod), CgroupId{1}, &records_[0], {}, false}};
    Snapshot snapshot;
    snapshot.cgroups = records_;
    snapshot.pods = readings_;
    CgroupTable table;
    fill(table, nullptr, snapshot, &names_);
    return table;
  }
  static std::shared_ptr<Pod> pod_without_manifest() {
    auto pod = sample_pod("podu", QosClass::kBurstable);
    pod->source = PodSource::kCgroupTree;
    pod->pod_namespace.clear();
    return pod;
  }

  SampleNames names_;
  std::vector<hr_record> records_;
  std::vector<PodReading> readings_;
  Runtime runtime_;
};

std::string label(std::string_view labels, const std::string& name) {
  const std::size_t at = ("," + std::string(labels)).find("," + name + "=\"");
  const std::size_t begin = at + name.size() + 2;
  return std::string(labels.substr(begin, labels.find('"', begin) - begin));
}

TEST_F(CgroupLabelsTest, TheRuntimeNamesPodsWithoutManifest) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  const auto app = labels.of(1);
  EXPECT_EQ(label(app, "container"), "app");
  EXPECT_EQ(label(app, "image"), "shop/app:1");
  EXPECT_EQ(label(app, "name"), kApp);
  EXPECT_EQ(label(app, "pod"), "web-0");
  EXPECT_EQ(label(app, "namespace"), "shop");
  // The pod's own cgroup has no runtime id, and yet the same pod's name.
  EXPECT_EQ(label(labels.of(0), "pod"), "web-0");
  EXPECT_EQ(label(labels.of(0), "container"), "");
  EXPECT_EQ(label(labels.of_pod(0), "pod"), "web-0");
}

TEST_F(CgroupLabelsTest, TheManifestsNameOfAPodStays) {
  const CgroupTable all = table(sample_pod("by-manifest", QosClass::kBurstable));
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  EXPECT_EQ(label(labels.of(1), "pod"), "by-manifest");
  EXPECT_EQ(label(labels.of(1), "namespace"), "default");
  EXPECT_EQ(label(labels.of(1), "container"), "app");
}

TEST_F(CgroupLabelsTest, ThePauseContainerHasNoContainerLabel) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  EXPECT_EQ(label(labels.of(2), "container"), "");
  EXPECT_EQ(label(labels.of(2), "image"), "pause:3.9");
}

TEST_F(CgroupLabelsTest, AContainersMonitorIsNoContainer) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  EXPECT_EQ(label(labels.of(6), "container"), "");
  EXPECT_EQ(label(labels.of(6), "name"), "");
  EXPECT_TRUE(labels.is_pod_internal(6)) << "and is counted with the pod alone";
}

TEST_F(CgroupLabelsTest, DockersContainerHasItsNameAndImage) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  EXPECT_EQ(label(labels.of(4), "name"), "db");
  EXPECT_EQ(label(labels.of(4), "image"), "postgres:16");
  EXPECT_EQ(label(labels.of(4), "pod"), "");
}

TEST_F(CgroupLabelsTest, OnlyPodsAndTheirContainersCountWithinAPod) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all), &runtime_);
  EXPECT_FALSE(labels.is_pod_internal(0)) << "the pod itself";
  EXPECT_FALSE(labels.is_pod_internal(1)) << "a container";
  EXPECT_TRUE(labels.is_pod_internal(2)) << "the pause container";
  EXPECT_TRUE(labels.is_pod_internal(3)) << "a container's own";
  EXPECT_FALSE(labels.is_pod_internal(4)) << "not in a pod";
}

TEST_F(CgroupLabelsTest, WithoutARuntimeThePathTellsTheId) {
  const CgroupTable all = table(pod_without_manifest());
  const CgroupLabels labels(all, PodIndex(all));
  EXPECT_EQ(label(labels.of(1), "name"), kApp);
  EXPECT_EQ(label(labels.of(1), "container"), "");
  EXPECT_EQ(label(labels.of(1), "pod"), "podu");
  EXPECT_EQ(label(labels.of(4), "name"), "") << "outside pods an id alone says nothing";
}

}  // namespace
}  // namespace headroom::report
