// SPDX-License-Identifier: Apache-2.0
// Pod manifests: what is read of one, and what is said of a bad one.
#include "manifest/manifest_reader.h"

#include "config/rows.h"
#include "judge/resources/pod_resources.h"
#include "support/cpu_time.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::RowName;
using namespace std::chrono_literals;

std::vector<std::string> said(const config::Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const config::Diagnostic& diagnostic : diagnostics)
    lines.push_back(to_string(diagnostic));
  return lines;
}

std::vector<std::string> names(const std::vector<Pod>& pods) {
  std::vector<std::string> all;
  for (const Pod& pod : pods)
    all.push_back(pod.pod_namespace + "/" + pod.name);
  return all;
}

// The one pod of a text that must be good.
Pod only(const std::string& text) {
  const Manifests manifests = parse_manifests(text, "f");
  EXPECT_EQ(said(manifests.diagnostics), std::vector<std::string>{});
  EXPECT_EQ(manifests.pods.size(), 1u);
  return manifests.pods.at(0);
}

constexpr const char* kFull = R"(apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  uid: 0f3c2a1b-1111-4222-8333-944445555666
  labels: {app: web}
spec:
  priority: 1000
  priorityClassName: high
  terminationGracePeriodSeconds: 45
  overhead: {memory: 16Mi}
  initContainers:
  - name: setup
    resources: {limits: {memory: 32Mi}}
  - name: mesh
    restartPolicy: Always
    resources: {requests: {cpu: 0.1, memory: 8Mi}}
  containers:
  - name: main
    image: registry.example/web
    resources:
      requests: {cpu: 1, memory: 64Mi}
      limits: {memory: 128Mi, ephemeral-storage: 1e9}
  - name: log
status:
  qosClass: Burstable
)";

TEST(Manifest, SaysAllThatEvictionNeeds) {
  const Pod pod = only(kFull);
  EXPECT_EQ(pod.uid, "0f3c2a1b-1111-4222-8333-944445555666");
  EXPECT_EQ(pod.name, "web");
  EXPECT_EQ(pod.pod_namespace, "shop");
  EXPECT_EQ(pod.source, PodSource::kManifest);
  EXPECT_EQ(pod.priority, 1000);
  EXPECT_EQ(pod.priority_class, "high");
  EXPECT_FALSE(pod.is_static);
  EXPECT_EQ(pod.declared_qos, QosClass::kBurstable);
  EXPECT_EQ(pod.termination_grace, 45s);
  EXPECT_EQ(pod.overhead.at("memory").canonical(), "16Mi");
  ASSERT_EQ(pod.init_containers.size(), 2u);
  EXPECT_FALSE(pod.init_containers[0].sidecar);
  EXPECT_TRUE(pod.init_containers[1].sidecar);
  EXPECT_EQ(pod.init_containers[1].requests.at("cpu").milli_value(), 100);
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_EQ(pod.containers[0].name, "main");
  EXPECT_EQ(pod.containers[0].requests.at("memory").canonical(), "64Mi");
  EXPECT_EQ(pod.containers[0].limits.at("ephemeral-storage").value(), 1'000'000'000);
  EXPECT_TRUE(pod.containers[1].requests.empty());
}

TEST(Manifest, ARequestThatIsAbsentIsTheLimit) {
  const Pod pod = only(kFull);
  EXPECT_EQ(pod.init_containers[0].requests.at("memory").canonical(), "32Mi");
  EXPECT_EQ(pod.containers[0].requests.at("ephemeral-storage").value(), 1'000'000'000);
}

// A pod of one container without resources; the lines below start at 5.
std::string pod_with(const std::string& metadata, const std::string& spec = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n" + metadata +
         "spec:\n  containers: [{name: c}]\n" + spec;
}

TEST(Manifest, DefaultsAreTheApiServers) {
  const Pod pod = only(pod_with(""));
  EXPECT_EQ(pod.pod_namespace, "default");
  EXPECT_EQ(pod.priority, 0);
  EXPECT_EQ(pod.termination_grace, 30s);
  EXPECT_FALSE(pod.declared_qos);
  EXPECT_FALSE(pod.pod_level);
}

struct Priority {
  const char* name;
  const char* spec;
  std::int32_t priority;
};

TEST(Manifest, CriticalClassesHaveTheirPriority) {
  const Priority rows[] = {
      {"node", "  priorityClassName: system-node-critical\n", 2'000'001'000},
      {"cluster", "  priorityClassName: system-cluster-critical\n", 2'000'000'000},
      {"a number wins", "  priorityClassName: system-node-critical\n  priority: 5\n", 5},
      {"another class", "  priorityClassName: gold\n", 0},
  };
  for (const Priority& row : rows)
    EXPECT_EQ(only(pod_with("", row.spec)).priority, row.priority) << row.name;
}

struct Static {
  const char* name;
  const char* annotations;
  bool is_static;
};

TEST(Manifest, OnlyAnAnnotationMakesAPodStatic) {
  const Static rows[] = {
      {"none", "{}", false},
      {"from a file", "{kubernetes.io/config.source: file}", true},
      {"from a url", "{kubernetes.io/config.source: http}", true},
      {"from the API", "{kubernetes.io/config.source: api}", false},
      {"a mirror", "{kubernetes.io/config.mirror: abc0}", true},
  };
  for (const Static& row : rows)
    EXPECT_EQ(only(pod_with(std::string("  annotations: ") + row.annotations + "\n")).is_static,
              row.is_static)
        << row.name;
}

TEST(Manifest, AMirrorsCgroupBearsTheStaticPodsUid) {
  EXPECT_EQ(only(pod_with("  uid: 1-2\n  annotations: {kubernetes.io/config.mirror: abc0}\n")).uid,
            "abc0");
}

TEST(Manifest, TheWholeDirectoryMayBeStatic) {
  const Manifests manifests = parse_manifests(pod_with(""), "f", {.all_static = true});
  ASSERT_EQ(manifests.pods.size(), 1u);
  EXPECT_TRUE(manifests.pods[0].is_static);
}

TEST(Manifest, AUidThatIsAbsentFollowsFromTheName) {
  const std::string uid = only(pod_with("")).uid;
  EXPECT_EQ(uid, derived_uid("default", "a"));
  EXPECT_EQ(uid, only(pod_with("  labels: {x: y}\n", "  priority: 1\n")).uid);
  EXPECT_NE(uid, derived_uid("default", "b"));
  EXPECT_NE(uid, derived_uid("other", "a"));
  // FNV-1a 128 of "default/a", made a UUID; written down so that it never changes.
  EXPECT_EQ(uid, "04ebd2d2-b606-87a8-a883-0fa6848a3b46");
}

TEST(Manifest, PodLevelRequestsFillInFromContainersThenLimits) {
  const Pod by_limit = only(pod_with("", "  resources: {limits: {memory: 1Gi}}\n"));
  EXPECT_EQ(by_limit.pod_level->requests.at("memory").canonical(), "1Gi");
  const Pod by_containers = only(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
      "  resources: {limits: {memory: 1Gi}}\n"
      "  containers: [{name: c, resources: {requests: {memory: 64Mi}}}]\n");
  EXPECT_EQ(eviction_request(by_containers, "memory").canonical(), "64Mi");
}

TEST(Manifest, PodLevelResourcesWithoutAnEntrySayNothing) {
  const Pod pod = only(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  resources: {}\n"
      "  containers: [{name: c, resources: {requests: {memory: 64Mi}}}]\n");
  EXPECT_FALSE(pod.pod_level);
  EXPECT_EQ(eviction_request(pod, "memory").canonical(), "64Mi");
}

TEST(Manifest, PodLevelAmountsAreThoseGrantedOfAResize) {
  const Pod pod = only(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n"
      "  resources: {requests: {memory: 4Gi}, limits: {memory: 8Gi, pid: \"100\"}}\n"
      "  containers: [{name: c}]\n"
      "status:\n  allocatedResources: {memory: 1Gi}\n"
      "  resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}\n");
  EXPECT_EQ(pod.pod_level->requests.at("memory").canonical(), "1Gi");
  EXPECT_EQ(pod.pod_level->limits.at("memory").canonical(), "2Gi");
  EXPECT_FALSE(pod.pod_level->requests.contains("pid")) << "a limit alone";
}

TEST(Manifest, AMergeKeyBringsInWhatIsNotThere) {
  const Pod pod = only(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
      "  - {name: a, resources: {requests: &r {memory: 64Mi, cpu: 1}}}\n"
      "  - {name: b, resources: {requests: {<<: *r, cpu: 2}}}\n");
  EXPECT_EQ(pod.containers[1].requests.at("memory").canonical(), "64Mi");
  EXPECT_EQ(pod.containers[1].requests.at("cpu").value(), 2);
}

struct Several {
  const char* name;
  std::string text;
  std::vector<std::string> pods;
};
void PrintTo(const Several& row, std::ostream* out) {
  *out << row.name;
}

class Documents : public testing::TestWithParam<Several> {};

TEST_P(Documents, AreAllRead) {
  const Manifests manifests = parse_manifests(GetParam().text, "f");
  EXPECT_EQ(said(manifests.diagnostics), std::vector<std::string>{});
  EXPECT_EQ(names(manifests.pods), GetParam().pods);
}

const std::string kA = pod_with("");
const std::string kB = pod_with("  namespace: b\n");
const Several kSeveral[] = {
    {"nothing", "", {}},
    {"two_documents", kA + "---\n" + kB, {"default/a", "b/a"}},
    {"empty_documents_between", "---\n---\n" + kA + "---\n# end\n", {"default/a"}},
    {"json",
     R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j"},
	"spec": {"containers": [{"name": "c"}]}})",
     {"default/j"}},
    {"a_list",
     "apiVersion: v1\nkind: List\nitems:\n"
     "- {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c}]}}\n"
     "- {apiVersion: v1, kind: Pod, metadata: {name: y}, spec: {containers: [{name: c}]}}\n",
     {"default/x", "default/y"}},
    {"a_pod_list_whose_items_do_not_say_what_they_are",
     "apiVersion: v1\nkind: PodList\nitems:\n"
     "- {metadata: {name: x}, spec: {containers: [{name: c}]}}\n",
     {"default/x"}},
};
INSTANTIATE_TEST_SUITE_P(Several, Documents, testing::ValuesIn(kSeveral), RowName{});

struct Bad {
  const char* name;
  std::string text;
  std::vector<std::string> diagnostics;
};
void PrintTo(const Bad& row, std::ostream* out) {
  *out << row.name;
}

class BadManifest : public testing::TestWithParam<Bad> {};

TEST_P(BadManifest, IsComplainedOfAndLeftOut) {
  const Manifests manifests = parse_manifests(GetParam().text, "f");
  EXPECT_EQ(said(manifests.diagnostics), GetParam().diagnostics);
  EXPECT_TRUE(manifests.pods.empty());
}

std::string with_resources(const std::string& resources) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n"
         "    resources:\n" +
         resources;
}

const Bad kBad[] = {
    {"another_kind",
     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
     {"f:2: kind Deployment: expected Pod"}},
    {"another_kind_in_a_list",
     "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service}\n",
     {"f:4: kind Service: expected Pod"}},
    {"no_kind", "metadata: {name: a}\n", {"f:1: missing kind: expected Pod"}},
    {"no_version", "kind: Pod\n", {"f:1: missing apiVersion: expected v1"}},
    {"another_version",
     "apiVersion: v2\nkind: Pod\n",
     {"f:1: apiVersion: expected v1, found \"v2\""}},
    {"no_map", "- a\n", {"f:1: expected a Pod, found a list"}},
    {"no_yaml", "a: [\n", {"f:2: not YAML: end of sequence flow not found"}},
    {"a_comma_after_json",
     "{\"kind\": \"List\"},\n",
     {"f:1: not YAML: nothing can begin here", "f:1: missing apiVersion: expected v1"}},
    {"no_name_and_no_spec",
     "apiVersion: v1\nkind: Pod\n",
     {"f:1: missing metadata.name", "f:1: missing spec"}},
    {"an_empty_name",
     "apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"\"\nspec: {containers: [{name: c}]}\n",
     {"f:4: missing metadata.name"}},
    {"no_containers",
     "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n",
     {"f:4: spec.containers: expected at least one container"}},
    {"a_malformed_quantity",
     with_resources("      requests:\n        cpu: 1\n        memory: 64M B\n"),
     {"f:10: spec.containers[0].resources.requests.memory: \"64M B\": quantities must match the "
      "regular "
      "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}},
    {"a_negative_request",
     with_resources("      requests:\n        memory: -64Mi\n"),
     {"f:9: spec.containers[0].resources.requests.memory: must not be negative, found -64Mi"}},
    {"a_request_above_its_limit",
     with_resources("      limits:\n        memory: 32Mi\n      requests:\n        memory: 64Mi\n"),
     {"f:11: spec.containers[0].resources.requests.memory: the request of 64Mi is more than the "
      "limit of 32Mi"}},
    {"a_list_for_a_quantity",
     with_resources("      limits:\n        memory: []\n"),
     {"f:9: spec.containers[0].resources.limits.memory: expected a quantity such as 512Mi or 500m, "
      "found a list"}},
    {"a_negative_grace",
     pod_with("", "  terminationGracePeriodSeconds: -1\n"),
     {"f:7: spec.terminationGracePeriodSeconds: expected a whole number from 0 to 2147483647, "
      "found the number -1"}},
    {"a_priority_that_is_no_number",
     pod_with("", "  priority: high\n"),
     {"f:7: spec.priority: expected a whole number from -2147483648 to 2147483647, found the "
      "string \"high\""}},
    {"a_class_that_is_none",
     pod_with("", "status: {qosClass: Gold}\n"),
     {"f:7: status.qosClass: expected Guaranteed, Burstable or BestEffort, found \"Gold\""}},
    {"a_uid_no_cgroup_can_bear",
     pod_with("  uid: a/b\n"),
     {"f:5: metadata.uid: expected letters, digits and dashes, found \"a/b\""}},
    {"every_mistake_at_once",
     "apiVersion: v1\nkind: Pod\nmetadata: {}\nspec:\n  priority: x\n  containers:\n  - image: i\n",
     {"f:3: missing metadata.name", "f:7: missing spec.containers[0].name",
      "f:5: spec.priority: expected a whole number from -2147483648 to 2147483647, found the "
      "string \"x\""}},
};
INSTANTIATE_TEST_SUITE_P(Bad, BadManifest, testing::ValuesIn(kBad), RowName{});

// Each row grows another list or map of a pod.
struct Growing {
  const char* name;
  std::function<std::string(int)> text;
};
void PrintTo(const Growing& row, std::ostream* out) {
  *out << row.name;
}

std::string numbered(const std::string& before, int count, const std::string& after) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += before + std::to_string(i) + after;
  return all;
}

class TimeToRead : public testing::TestWithParam<Growing> {};

TEST_P(TimeToRead, GrowsWithTheManifestAndNotWithItsSquare) {
  const auto read = [](const std::string& text) { only(text); };
  EXPECT_LE(test::growth(GetParam().text, 5'000, read), 8);  // 16 if quadratic
}

const Growing kGrowing[] = {
    {"labels", [](int n) { return pod_with("  labels:\n" + numbered("    label", n, ": a\n")); }},
    {"requests",
     [](int n) { return with_resources("      requests:\n" + numbered("        r", n, ": 1\n")); }},
    {"volumes",
     [](int n) { return pod_with("", "  volumes:\n" + numbered("  - name: v", n, "\n")); }},
    {"statuses",
     [](int n) {
       return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n" +
              numbered("  - name: c", n, "\n") + "status:\n  containerStatuses:\n" +
              numbered("  - name: c", n, "\n");
     }},
};
INSTANTIATE_TEST_SUITE_P(Growing, TimeToRead, testing::ValuesIn(kGrowing), RowName{});

TEST(Errors, AreAHundredOfAFileAndTheirNumber) {
  std::string text;
  for (std::size_t i = 0; i < kMaxFileErrors + 3; ++i)
    text += "---\nkind: Deployment\n";
  const auto errors = said(parse_manifests(text, "f").diagnostics);
  ASSERT_EQ(errors.size(), kMaxFileErrors + 1);
  EXPECT_EQ(errors[kMaxFileErrors - 1], "f:200: kind Deployment: expected Pod");
  EXPECT_EQ(errors.back(), "f: and 3 more");
}

TEST(Errors, OfOneTextAreLimitedWithThoseOfPodsThatAreThereTwice) {
  std::string text;
  for (int i = 0; i < 2; ++i)
    text += "kind: Deployment\n---\n";
  for (std::size_t i = 0; i < kMaxFileErrors + 2; ++i)
    text += pod_with("  uid: u-1\n") + "---\n";
  const auto errors = said(parse_manifests(text, "f").diagnostics);
  ASSERT_EQ(errors.size(), kMaxFileErrors + 1);
  EXPECT_EQ(errors.back(), "f: and 3 more");
}

TEST(Errors, AreCutOffBetweenTwoCharacters) {
  const std::string intro = "kind ";
  const std::string fits(kMaxErrorBytes - intro.size() - 1, 'x');
  const auto errors =
      said(parse_manifests("kind: " + fits + "\u00e4" + fits + "\n", "f").diagnostics);
  EXPECT_EQ(errors, std::vector<std::string>{"f:1: " + intro + fits + "..."});
}

TEST(Errors, ThatAKubeletsPodIsShownWithAreLimited) {
  std::string text = kA + "  tolerations:\n";
  for (std::size_t i = 0; i < 2 * kMaxFileErrors; ++i)
    text += "  - {operator: Unknown}\n";
  const Manifests manifests =
      parse_manifests(pod_with("  uid: u-1\n") + text.substr(kA.size()), "f", {.of_kubelet = true});
  ASSERT_EQ(manifests.pods.size(), 1u);
  EXPECT_EQ(manifests.pods[0].ignored_fields.size(), kMaxFileErrors);
}

TEST(Pods, AreLimitedAndTheFirstOneLeftOutIsNamed) {
  const auto pods_of = [](const std::string& file, std::size_t count) {
    ParsedFile parsed_file;
    for (std::size_t i = 0; i < count; ++i) {
      Pod pod;
      pod.pod_namespace = "default";
      pod.name = pod.uid = file + std::to_string(i);
      parsed_file.found.push_back({std::move(pod), file});
    }
    return parsed_file;
  };
  const ParsedFile first = pods_of("first", kMaxPods), second = pods_of("second", 2);
  EXPECT_TRUE(merge_files({&first}).diagnostics.empty());
  const Manifests all = merge_files({&first, &second});
  EXPECT_EQ(all.pods.size(), kMaxPods);
  EXPECT_EQ(
      said(all.diagnostics),
      std::vector<std::string>{
          "second: pod default/second0 and those after it are left out: more than 8192 pods"});
}

}  // namespace
}  // namespace headroom::observe
