// SPDX-License-Identifier: Apache-2.0
// What a kubelet's PodList becomes: one file a pod, which headroomd's own reader understands.
#include "kube/kubelet/pod_list.h"

#include "judge/resources/pod_resources.h"
#include "manifest/manifest_reader.h"

#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;

// As a kubelet of 1.33 answers: an API pod being resized, a static pod, a CRI-O one that is being
// deleted, one that ended, and one of a Job that failed.
std::string answer() {
  std::ifstream in("tests/fixtures/kube/pods.json");
  return {std::istreambuf_iterator<char>(in), {}};
}

// As headroomd reads it.
Pod pod_of(const std::string& text) {
  const auto read = observe::parse_manifests(text, "f");
  EXPECT_TRUE(read.diagnostics.empty()) << to_string(read.diagnostics.front());
  EXPECT_EQ(read.pods.size(), 1u) << text;
  return read.pods.at(0);
}

Pod pod(const char* uid) {
  const auto files = pod_files(answer());
  EXPECT_TRUE(files);
  return pod_of(files->pods.at(uid));
}

constexpr const char* kWeb = "7f6f5a3e-1111-4a4a-8b8b-0123456789ab";
constexpr const char* kStatic = "d2b6a4c8e0f1d2b6a4c8e0f1d2b6a4c8";
constexpr const char* kLeaving = "9a9a9a9a-2222-4b4b-8c8c-ba9876543210";

TEST(PodList, HasAFileForEachThatHasNotEnded) {
  const auto files = pod_files(answer());
  ASSERT_TRUE(files) << files.error().what;
  std::set<std::string> uids;
  for (const auto& [uid, text] : files->pods)
    uids.insert(uid);
  EXPECT_EQ(uids, (std::set<std::string>{kWeb, kStatic, kLeaving}));
  EXPECT_EQ(files->ended, 2u);
  EXPECT_EQ(files->invalid, 0u);
}

TEST(PodList, KeepsWhatEvictionGoesBy) {
  const Pod web = pod(kWeb);
  EXPECT_EQ(web.name, "web-5d9c7b6f4-x2x7q");
  EXPECT_EQ(web.pod_namespace, "shop");
  EXPECT_EQ(web.priority, 1000);
  EXPECT_EQ(web.priority_class, "high");
  EXPECT_EQ(web.declared_qos, QosClass::kBurstable);
  EXPECT_EQ(web.overhead.at("memory").canonical(), "16Mi");
  EXPECT_EQ(web.labels.at("env"), "prod") << "a label may be called as what is left out elsewhere";
  EXPECT_EQ(web.init_containers.at(0).sidecar, true);
  EXPECT_EQ(web.containers.at(0).pre_stop, (std::vector<std::string>{"/bin/sleep", "5"}));
  EXPECT_EQ(web.placement.node_name, "node-1");
  EXPECT_EQ(web.placement.tolerations.size(), 2u);
  EXPECT_FALSE(web.is_static);
  ASSERT_EQ(web.volumes.size(), 4u);
  EXPECT_EQ(web.volumes[0].size_limit->canonical(), "1Gi");
  EXPECT_EQ(web.volumes[1].host_path, "/var/lib/shop");
  EXPECT_EQ(web.volumes[2].kind, Volume::Kind::kConfigMap);
  EXPECT_EQ(web.volumes[3].kind, Volume::Kind::kOther);
}

TEST(PodList, AResizeThatIsNotGrantedYetDoesNotCount) {
  const Pod web = pod(kWeb);
  EXPECT_EQ(web.containers.at(0).requests.at("memory").canonical(), "128Mi");
  EXPECT_EQ(web.containers.at(0).limits.at("memory").canonical(), "256Mi");
  EXPECT_EQ(web.containers.at(0).requests.at("cpu").canonical(), "500m");
}

TEST(PodList, AStaticPodIsOneByItsAnnotations) {
  const Pod etcd = pod(kStatic);
  EXPECT_TRUE(etcd.is_static);
  EXPECT_EQ(etcd.uid, kStatic);
}

// The API server's copy of it has a uid of its own; the cgroup has the annotation's.
TEST(PodList, AMirrorPodIsTheStaticOne) {
  Json list = Json::parse(answer());
  for (Json& item : list["items"])
    if (item["metadata"]["uid"] == kStatic) {
      item["metadata"]["uid"] = "11111111-2222-4333-8444-555555555555";
      item["metadata"]["annotations"]["kubernetes.io/config.mirror"] = kStatic;
    }
  const auto files = pod_files(list.dump());
  ASSERT_TRUE(files);
  const Pod mirror = pod_of(files->pods.at("11111111-2222-4333-8444-555555555555"));
  EXPECT_EQ(mirror.uid, kStatic);
  EXPECT_TRUE(mirror.is_static);
}

TEST(PodList, TheDeletionRequestSaysTheGrace) {
  EXPECT_EQ(pod(kLeaving).termination_grace, std::chrono::seconds(7));
}

TEST(PodList, NamesTheContainers) {
  const auto files = pod_files(answer());
  ASSERT_TRUE(files);
  const auto read = observe::parse_manifests(files->pods.at(kWeb), "f");
  const auto& main = read.containers.at(std::string(64, 'a'));
  EXPECT_EQ(main.container, "main");
  EXPECT_EQ(main.image, "registry.example/shop/web:1.4");
  EXPECT_EQ(main.pod, "web-5d9c7b6f4-x2x7q");
  EXPECT_EQ(main.pod_namespace, "shop");
  EXPECT_EQ(read.containers.at(std::string(64, 'b')).container, "mesh");
}

// Neither secrets nor what changes with every probe.
TEST(PodList, LeavesTheRestOut) {
  const auto files = pod_files(answer());
  ASSERT_TRUE(files);
  const std::string& text = files->pods.at(kWeb);
  for (const char* word : {"hunter2", "managedFields", "livenessProbe", "last-applied",
                           "secretName", "lastTransitionTime", "restartCount", "--listen"})
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  EXPECT_LT(text.size() * 2, Json::parse(answer())["items"][0].dump().size());
}

TEST(PodList, SaysTheSameForTheSameWhateverAProbeFound) {
  Json list = Json::parse(answer());
  const auto before = pod_files(list.dump());
  Json& status = list["items"][0]["status"];
  status["conditions"][0]["status"] = "False";
  status["containerStatuses"][0]["ready"] = false;
  list["items"][0]["metadata"]["resourceVersion"] = "99";
  list["metadata"]["resourceVersion"] = "100";
  const auto after = pod_files(list.dump());
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->pods, after->pods);
}

struct Bad {
  const char* name;
  std::string answer;
  const char* error;
};

TEST(PodList, NothingIsKnownFromNonsense) {
  const std::string whole = answer();
  const Bad rows[] = {
      {"empty", "", "not JSON"},
      {"half", whole.substr(0, whole.size() / 2), "not JSON"},
      {"words", "Unauthorized", "not JSON"},
      {"a list", "[]", "PodList"},
      {"null", "null", "PodList"},
      {"a status", R"({"kind":"Status","apiVersion":"v1","code":403})", "PodList"},
      {"items is a map", R"({"kind":"PodList","items":{}})", "items"},
  };
  for (const Bad& row : rows) {
    const auto files = pod_files(row.answer);
    ASSERT_FALSE(files) << row.name;
    EXPECT_NE(files.error().what.find(row.error), std::string::npos) << files.error().what;
  }
}

TEST(PodList, NoPodsIsAnAnswer) {
  for (const char* text : {R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]})",
                           R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":null})"}) {
    const auto files = pod_files(text);
    ASSERT_TRUE(files) << files.error().what;
    EXPECT_TRUE(files->pods.empty());
  }
}

TEST(PodList, LabelsAndAnnotationsBeyondALimitAreDroppedAndSaid) {
  Json list = Json::parse(answer());
  Json& metadata = list["items"][0]["metadata"];
  for (int i = 0; i < 80'000; ++i) {
    metadata["labels"]["label" + std::to_string(i)] = "a";
    metadata["annotations"]["a" + std::to_string(i)] = "b";
  }
  metadata["annotations"]["kubernetes.io/config.source"] = "file";
  const auto files = pod_files(list.dump());
  ASSERT_TRUE(files) << files.error().what;
  EXPECT_EQ(files->cut, std::vector<std::string>{"shop/web-5d9c7b6f4-x2x7q"});
  EXPECT_TRUE(files->too_large.empty());
  const Pod web = pod_of(files->pods.at(kWeb));
  EXPECT_EQ(web.labels.size(), kMaxLabels);
  EXPECT_EQ(web.annotations.size(), kMaxLabels);
  EXPECT_TRUE(web.is_static) << "what headroomd goes by is kept";
}

static_assert(kMaxPodFileBytes == observe::kMaxManifestBytes);

TEST(PodList, APodThatHeadroomdWouldNotReadIsLeftOutAndSaid) {
  Json list = Json::parse(answer());
  Json& selector = list["items"][0]["spec"]["nodeSelector"];
  for (int i = 0; i < 80'000; ++i)
    selector["label" + std::to_string(i)] = "a";
  const auto files = pod_files(list.dump());
  ASSERT_TRUE(files) << files.error().what;
  EXPECT_EQ(files->too_large, std::vector<std::string>{"shop/web-5d9c7b6f4-x2x7q"});
  EXPECT_TRUE(files->cut.empty());
  EXPECT_FALSE(files->pods.contains(kWeb));
  EXPECT_EQ(files->pods.size(), 2u);
}

TEST(PodList, AStrangePodIsLeftOutAndTheOthersAreNot) {
  Json list = Json::parse(answer());
  list["items"][0]["metadata"]["uid"] = "../../etc/passwd";
  list["items"].push_back("a word");
  list["items"].push_back({{"metadata", {{"name", "no-uid"}}}});
  const auto files = pod_files(list.dump());
  ASSERT_TRUE(files) << files.error().what;
  EXPECT_EQ(files->invalid, 3u);
  EXPECT_EQ(files->pods.size(), 2u);
}

}  // namespace
}  // namespace headroom::kube
