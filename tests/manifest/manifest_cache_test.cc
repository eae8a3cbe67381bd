// SPDX-License-Identifier: Apache-2.0
// Two directories of manifests, read as they change.
#include "manifest/manifest_cache.h"

#include "config/temp_dir.h"

#include <unistd.h>

#include <set>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;
using test::TempDir;
using Names = std::set<std::string>;

std::string pod(const std::string& name, const std::string& uid, const std::string& more = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: " + uid +
         "}\nspec: {containers: [{name: main}]}\n" + more;
}

class ManifestCacheTest : public ::testing::Test {
 protected:
  ManifestCacheTest() {
    fs::create_directory(kubelet());
    fs::create_directory(ours());
  }
  fs::path kubelet() const { return dir_.path() / "kubelet"; }
  fs::path ours() const { return dir_.path() / "ours"; }
  // As programs write: a new file over the old one.
  void write(const fs::path& file, const std::string& text) const {
    const fs::path fresh = file.parent_path() / ".fresh";
    std::ofstream(fresh) << text;
    fs::rename(fresh, file);
  }
  Manifests read() {
    const std::vector<ManifestSource> places{{kubelet(), {.of_kubelet = true}}, {ours(), {}}};
    return cache_.read(places);
  }
  static Names names(const Manifests& read) {
    Names names;
    for (const Pod& each : read.pods)
      names.insert(each.name);
    return names;
  }

  TempDir dir_;
  ManifestCache cache_;
};

TEST_F(ManifestCacheTest, FollowsWhatIsThere) {
  write(kubelet() / "a.json", pod("a", "u1"));
  write(ours() / "b.yaml", pod("b", "u2"));
  EXPECT_EQ(names(read()), (Names{"a", "b"}));
  write(kubelet() / "a.json", pod("a2", "u1"));
  fs::remove(ours() / "b.yaml");
  EXPECT_EQ(names(read()), Names{"a2"});
}

TEST_F(ManifestCacheTest, TheFirstPlaceWinsAndTheOtherIsReported) {
  write(kubelet() / "a.json", pod("a", "u1"));
  write(ours() / "mine.yaml", pod("mine", "u1"));
  const auto seen = read();
  EXPECT_EQ(names(seen), Names{"a"});
  EXPECT_EQ(seen.of_kubelet, std::set<std::string>{"u1"});
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_NE(seen.diagnostics[0].what.find("duplicate uid u1"), std::string::npos);
  EXPECT_TRUE(seen.kubelet_complaints.empty());
}

TEST_F(ManifestCacheTest, WhatAProgramWroteIsDoubtedAndWhatAPersonWroteIsWrong) {
  write(kubelet() / "bad.json", "{\"kind\": \"Pod\"");
  write(kubelet() / "good.json", pod("good", "u1"));
  write(ours() / "bad.yaml", "kind: Pod\napiVersion: v2\n");
  const auto seen = read();
  EXPECT_EQ(names(seen), Names{"good"});
  EXPECT_EQ(seen.kubelet_complaints.size(), 1u);
  ASSERT_EQ(seen.diagnostics.size(), 1u);
  EXPECT_EQ(seen.diagnostics[0].file, (ours() / "bad.yaml").string());
}

// It runs: left out, it would be a pod of priority 0 without requests, and evicted first.
TEST_F(ManifestCacheTest, AKubeletsPodStaysWhateverElseOfItIsNotUnderstood) {
  const std::string odd =
      "apiVersion: v1\nkind: Pod\n"
      "metadata:\n  name: a\n  uid: u1\n"
      "  ownerReferences: [{kind: DaemonSet, name: d}]\n"
      "spec:\n  priority: 2000001000\n  priorityClassName: system-node-critical\n"
      "  tolerations:\n"
      "  - {key: k, operator: SomethingNew, value: \"5\", effect: NoExecute}\n"
      "  - {operator: Exists, effect: NoSchedule}\n"
      "  containers:\n"
      "  - {name: main, resources: {requests: {memory: 64Mi, cpu: lots}}}\n"
      "status: {qosClass: Burstable}\n";
  write(kubelet() / "a.json", odd);
  write(ours() / "a.yaml", odd);
  const auto seen = read();
  ASSERT_EQ(seen.pods.size(), 1u);
  const Pod& pod = seen.pods[0];
  EXPECT_EQ(pod.priority, 2'000'001'000);
  EXPECT_EQ(pod.priority_class, "system-node-critical");
  EXPECT_TRUE(pod.placement.daemon_set);
  EXPECT_EQ(pod.declared_qos, QosClass::kBurstable);
  ASSERT_EQ(pod.containers.size(), 1u);
  EXPECT_EQ(pod.containers[0].requests.at("memory").value(), 64 << 20);
  ASSERT_EQ(pod.placement.tolerations.size(), 2u);
  EXPECT_EQ(pod.placement.tolerations[0].op, Toleration::Operator::kUnknown);
  EXPECT_EQ(pod.placement.tolerations[0].key, "k");
  ASSERT_EQ(pod.ignored_fields.size(), 2u) << "headroomctl pods shows them";
  EXPECT_TRUE(pod.ignored_fields[0].starts_with("spec.containers[0].resources.requests.cpu"))
      << pod.ignored_fields[0];
  EXPECT_TRUE(pod.ignored_fields[1].starts_with("spec.tolerations[0].operator"))
      << pod.ignored_fields[1];
  EXPECT_EQ(seen.kubelet_complaints.size(), 2u) << "the operator and the quantity";
  EXPECT_EQ(seen.diagnostics.size(), 2u) << "the operator's own file is still refused";
}

// The commands of a kubelet's pods are the kubelet's to run, in the container, through the runtime.
TEST_F(ManifestCacheTest, APreStopCommandOfAKubeletsPodIsNotKept) {
  const std::string text =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u1}\n"
      "spec: {containers: [{name: main, lifecycle: {preStop: {exec: {command: [sync]}}}}]}\n";
  write(kubelet() / "a.json", text);
  const auto kubelets = read();
  ASSERT_EQ(kubelets.pods.size(), 1u);
  EXPECT_TRUE(kubelets.pods[0].containers[0].pre_stop.empty());
  std::filesystem::remove(kubelet() / "a.json");
  write(ours() / "a.yaml", text);
  const auto operators = read();
  ASSERT_EQ(operators.pods.size(), 1u);
  EXPECT_FALSE(operators.pods[0].containers[0].pre_stop.empty());
}

// Nothing to rank it by: its cgroup alone counts, and its description is awaited.
TEST_F(ManifestCacheTest, AKubeletsPodWithoutAReadablePriorityIsLeftOut) {
  write(kubelet() / "a.json",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u1}\n"
        "spec: {priority: high, containers: [{name: main}]}\n");
  const auto seen = read();
  EXPECT_TRUE(seen.pods.empty());
  EXPECT_EQ(seen.kubelet_complaints.size(), 1u);
}

TEST_F(ManifestCacheTest, APodThatEndedIsNotThere) {
  write(kubelet() / "a.json", pod("a", "u1", "status: {phase: Failed}\n"));
  write(kubelet() / "b.json", pod("b", "u2", "status: {phase: Pending}\n"));
  EXPECT_EQ(names(read()), Names{"b"});
}

TEST_F(ManifestCacheTest, ADirectoryThatOthersMayWriteIsNotRead) {
  write(ours() / "b.yaml", pod("b", "u2"));
  for (const auto others : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(ours(), others, fs::perm_options::add);
    const auto refused = read();
    EXPECT_TRUE(names(refused).empty());
    ASSERT_EQ(refused.diagnostics.size(), 1u);
    EXPECT_EQ(refused.diagnostics[0].file, ours().string());
    EXPECT_EQ(refused.diagnostics[0].what,
              "writable by its group or by others, so it is not read: remove the permission with "
              "chmod go-w");
    fs::permissions(ours(), others, fs::perm_options::remove);
    EXPECT_EQ(names(read()), Names{"b"});
  }
}

TEST_F(ManifestCacheTest, AFileThatOthersMayWriteIsNotReadAndItsNeighboursAre) {
  write(ours() / "a.yaml", pod("a", "u1"));
  write(ours() / "b.yaml", pod("b", "u2"));
  fs::permissions(ours() / "a.yaml", fs::perms::others_write, fs::perm_options::add);
  const auto some = read();
  EXPECT_EQ(names(some), Names{"b"});
  ASSERT_EQ(some.diagnostics.size(), 1u);
  EXPECT_EQ(some.diagnostics[0].file, (ours() / "a.yaml").string());
}

TEST_F(ManifestCacheTest, AnotherUsersFilesAreReadOnlyIfTheyAreOfTheKubelet) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file to another user";
  constexpr uid_t kOther = 65534;
  write(kubelet() / "a.json", pod("a", "u1"));
  write(ours() / "b.yaml", pod("b", "u2"));
  ASSERT_EQ(::chown(kubelet().c_str(), kOther, kOther), 0);
  ASSERT_EQ(::chown((kubelet() / "a.json").c_str(), kOther, kOther), 0);
  ASSERT_EQ(::chown((ours() / "b.yaml").c_str(), kOther, kOther), 0);
  const auto some = read();
  EXPECT_EQ(names(some), Names{"a"});
  ASSERT_EQ(some.diagnostics.size(), 1u);
  EXPECT_EQ(some.diagnostics[0].what,
            "owned by uid 65534, so it is not read: its owner must be root");
}

TEST_F(ManifestCacheTest, ADirectoryThatIsNotThereHoldsNothing) {
  fs::remove(kubelet());
  write(ours() / "b.yaml", pod("b", "u2"));
  const auto seen = read();
  EXPECT_EQ(names(seen), Names{"b"});
  EXPECT_TRUE(seen.diagnostics.empty() && seen.kubelet_complaints.empty());
}

}  // namespace
}  // namespace headroom::observe
