// SPDX-License-Identifier: Apache-2.0
// Containers found in cgroup trees as runtimes make them, under both drivers.
#include "daemon/sources/pod_containers.h"

#include "config/rows.h"
#include "config/temp_dir.h"
#include "daemon/sources/runtime_container_names.h"
#include "observe/pod/pod_cgroup_path.h"

#include <initializer_list>
#include <map>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

const std::string kUid = "0f3c2a1b-1111-4222-8333-944445555666";
const std::string kSlice = "kubepods.slice/kubepods-pod0f3c2a1b_1111_4222_8333_944445555666.slice/";
const std::string kDirectory = "kubepods/pod" + kUid + "/";
const std::string kMain(64, 'a'), kLog(64, 'b'), kPause(64, 'c'), kBefore(64, 'd');

struct Row {
  const char* name;
  const char* root;
  std::set<std::string> tree;                 // as find -type d shows it
  std::map<std::string, std::string> expect;  // container → directory
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

// Captured from nodes; ids shortened to one letter each.
const Row kRows[] = {
    {"containerd_systemd",
     "kubepods.slice",
     {kSlice + "cri-containerd-" + kPause + ".scope", kSlice + "cri-containerd-" + kMain + ".scope",
      kSlice + "cri-containerd-" + kLog + ".scope"},
     {{"main", kSlice + "cri-containerd-" + kMain + ".scope"},
      {"log", kSlice + "cri-containerd-" + kLog + ".scope"}}},
    {"containerd_cgroupfs",
     "kubepods",
     {kDirectory + kPause, kDirectory + kMain, kDirectory + kLog},
     {{"main", kDirectory + kMain}, {"log", kDirectory + kLog}}},
    {"crio_systemd",
     "kubepods.slice",
     {kSlice + "crio-" + kPause + ".scope", kSlice + "crio-conmon-" + kMain + ".scope",
      kSlice + "crio-" + kMain + ".scope", kSlice + "crio-conmon-" + kLog + ".scope",
      kSlice + "crio-" + kLog + ".scope"},
     {{"main", kSlice + "crio-" + kMain + ".scope"}, {"log", kSlice + "crio-" + kLog + ".scope"}}},
    {"crio_cgroupfs",
     "kubepods",
     {kDirectory + "crio-" + kPause, kDirectory + "crio-conmon-" + kMain,
      kDirectory + "crio-" + kMain, kDirectory + "crio-" + kLog},
     {{"main", kDirectory + "crio-" + kMain}, {"log", kDirectory + "crio-" + kLog}}},
    {"one_that_was_restarted_leaves_its_last_behind",
     "kubepods.slice",
     {kSlice + "cri-containerd-" + kBefore + ".scope",
      kSlice + "cri-containerd-" + kMain + ".scope"},
     {{"main", kSlice + "cri-containerd-" + kMain + ".scope"}}},
};

Pod pod_with(std::initializer_list<const char*> names) {
  Pod pod;
  for (const char* name : names)
    pod.containers.emplace_back().name = name;
  return pod;
}

class PodContainers : public testing::TestWithParam<Row> {};

TEST_P(PodContainers, AreThoseOfTheKubelet) {
  TempDir dir;
  for (const std::string& path : GetParam().tree)
    fs::create_directories(dir.path() / path);
  const auto kubelet_names = std::make_shared<KubeletContainerNames>();
  kubelet_names->set({{kMain, {.container = "main"}}, {kLog, {.container = "log"}}});
  RuntimeContainerNames names(kubelet_names, dir.path());

  const auto tree = observe::read_pod_tree(dir.path(), GetParam().root);
  ASSERT_EQ(tree.pods.size(), 1u);
  EXPECT_EQ(tree.pods[0].uid, kUid);
  const Pod pod = pod_with({"main", "log"});
  const auto found =
      containers_of(pod, tree.pods[0], [&](std::string_view id) { return names.find(id); });
  std::map<std::string, std::string> paths;
  for (const auto& [name, path] : found)
    paths.emplace(name, path.substr(1));
  EXPECT_EQ(paths, GetParam().expect);
  EXPECT_EQ(found.size(), paths.size()) << "no container is two";
}

INSTANTIATE_TEST_SUITE_P(Captured, PodContainers, testing::ValuesIn(kRows), test::RowName());

// Neither the sandbox nor a monitor is its only container.
TEST(ContainersOf, OfASingleContainerTheSandboxIsExcluded) {
  TempDir dir;
  fs::create_directories(dir.path() / (kSlice + "crio-" + kPause + ".scope"));
  fs::create_directories(dir.path() / (kSlice + "crio-conmon-" + kMain + ".scope"));
  fs::create_directories(dir.path() / (kSlice + "crio-" + kMain + ".scope"));
  const auto tree = observe::read_pod_tree(dir.path(), "kubepods.slice");
  const Pod pod = pod_with({"main"});
  const ContainerIdentity main{.container = "main"};
  const auto found = containers_of(
      pod, tree.pods.at(0), [&](std::string_view id) { return id == kMain ? &main : nullptr; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->second, "/" + kSlice + "crio-" + kMain + ".scope");
}

// The kubelet reports a container when it runs; the daemon may have looked before.
TEST(RuntimeContainerNames, AContainerReportedLaterIsKnownThen) {
  TempDir dir;
  const auto kubelet_names = std::make_shared<KubeletContainerNames>();
  RuntimeContainerNames names(kubelet_names, dir.path());
  for (int look = 0; look < 20; ++look)
    EXPECT_EQ(names.find(kMain), nullptr);
  kubelet_names->set({{kMain, {.container = "main"}}});
  ASSERT_NE(names.find(kMain), nullptr);
  EXPECT_EQ(names.find(kMain)->container, "main");
  kubelet_names->set({});
  EXPECT_NE(names.find(kMain), nullptr) << "what an id stands for never changes";
}

}  // namespace
}  // namespace headroom::daemon
