// SPDX-License-Identifier: Apache-2.0
// The node's status: put together when something changes, written to a file others can read.
#include "daemon/status/node_status_tracker.h"

#include "config/temp_dir.h"
#include "daemon/servers.h"
#include "judge/admission/admission_node.h"
#include "manifest/node_manifest.h"
#include "support/story.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using namespace test;
using nlohmann::json;

// A node of 4 CPUs and 4 GiB whose pods ask for what they are given.
class StatusOfNode : public testing::Test {
 protected:
  StatusOfNode() : story(Policy{}) {
    story.policy.thresholds = {memory_below(100_MiB)};
    keeper.reconfigure(options(), story.policy);
  }

  static NodeOptions options() {
    NodeOptions options;
    options.name = "n1";
    options.labels = {{"zone", "a"}};
    options.reserved.kube.amounts.cpu = MilliCpu{500};
    options.reserved.system.amounts.memory = 412_MiB;
    return options;
  }
  void add(const std::string& name, Asks asks) {
    const std::size_t index = story.pod(name, 10_MiB);
    story.reading(index).pod = std::make_shared<const Pod>(pod_asking(name, asks));
  }
  report::NodeStatusRef look(std::int64_t ms, std::optional<Bytes> available = 2_GiB) {
    const Snapshot snapshot = story.snapshot(ms, available);
    judge(story.policy, snapshot, story.history, story.verdict);
    story.history = story.verdict.after;
    keeper.update(snapshot, story.verdict, {});
    return keeper.current();
  }
  static std::string quantity_in(const ResourceList& list, const char* resource) {
    const auto found = list.find(resource);
    return found == list.end() ? "absent" : found->second.canonical();
  }

  Story story;
  int changes = 0;
  Amounts machine{.cpu = MilliCpu{4000}};
  std::int64_t wall = 1'700'000'000;
  NodeStatusTracker keeper{
      {.on_change = [this](const report::NodeStatusRef&) { ++changes; },
       .machine = [this] { return machine; },
       .wall_clock = [this] { return report::Seconds(std::chrono::seconds(wall)); }}};
};

TEST_F(StatusOfNode, HasCapacityMinusReservationsAndRequests) {
  add("web", {.cpu = "1", .memory = "1Gi"});
  add("log", {.cpu = "250m"});
  const auto status = look(0);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state.name, "n1");
  EXPECT_EQ(quantity_in(status->capacity, "cpu"), "4");
  EXPECT_EQ(quantity_in(status->allocatable, "cpu"), "3500m");
  EXPECT_EQ(quantity_in(status->capacity, "memory"), "4Gi");
  EXPECT_EQ(quantity_in(status->allocatable, "memory"), "3584Mi") << "less 412Mi and 100Mi";
  EXPECT_EQ(quantity_in(status->allocatable, "pods"), "110");
  EXPECT_EQ(quantity_in(status->capacity, "ephemeral-storage"), "absent") << "never read";
  EXPECT_EQ(quantity_in(status->requested, "cpu"), "1250m");
  EXPECT_EQ(quantity_in(status->requested, "pods"), "2");
}

TEST_F(StatusOfNode, ChangesOnlyWithItsInputs) {
  add("web", {.cpu = "1"});
  look(0);
  look(1000);
  look(2000, 1_GiB);
  EXPECT_EQ(changes, 1);
  add("log", {.cpu = "1"});
  look(3000);
  EXPECT_EQ(changes, 2);
  story.record(0).populated = 0;
  EXPECT_EQ(quantity_in(look(4000)->requested, "cpu"), "1") << "who has ended holds nothing";
  machine.cpu = MilliCpu{8000};
  look(5000);
  EXPECT_EQ(changes, 3) << "CPUs are counted now and then";
  EXPECT_EQ(quantity_in(look(10'000)->capacity, "cpu"), "8");
}

TEST_F(StatusOfNode, APodThatIsBeingStartedHoldsItsRequests) {
  add("ended", {.cpu = "1"});
  story.record(0).populated = 0;
  EXPECT_EQ(quantity_in(look(0)->requested, "pods"), "0") << "it was there before the daemon";
  add("new", {.cpu = "2"});
  story.record(1).populated = 0;
  EXPECT_EQ(quantity_in(look(1000)->requested, "cpu"), "2");
  story.record(1).populated = 1;
  EXPECT_EQ(quantity_in(look(2000)->requested, "cpu"), "2");
  story.record(1).populated = 0;
  EXPECT_EQ(quantity_in(look(3000)->requested, "pods"), "0") << "it has ended";
}

// Its processes came and went between two sweeps.
TEST_F(StatusOfNode, APodThatRanUnseenHasEnded) {
  look(0);
  add("short", {.cpu = "2"});
  story.record(0).populated = 0;
  story.record(0).valid |= HR_CPU;
  story.record(0).cpu_usage_ns = 0;
  EXPECT_EQ(quantity_in(look(1000)->requested, "cpu"), "2");
  story.record(0).cpu_usage_ns = 300'000;
  EXPECT_EQ(quantity_in(look(2000)->requested, "pods"), "0");
  EXPECT_EQ(quantity_in(look(3000)->requested, "pods"), "0");
}

TEST_F(StatusOfNode, APodThatNeverStartsHoldsItsRequestsForAMinute) {
  look(0);
  add("new", {.cpu = "2"});
  story.record(0).populated = 0;
  EXPECT_EQ(quantity_in(look(1000)->requested, "cpu"), "2");
  EXPECT_EQ(quantity_in(look(60'999)->requested, "cpu"), "2");
  EXPECT_EQ(quantity_in(look(61'000)->requested, "pods"), "0");
  EXPECT_EQ(quantity_in(look(62'000)->requested, "pods"), "0");
}

TEST_F(StatusOfNode, UpdatesConditionsWithTheirTransitionTime) {
  story.policy.pressure_transition = std::chrono::seconds(10);
  look(0);
  wall += 60;
  const auto pressed = look(1000, 50_MiB);
  const auto& memory = pressed->conditions[0];
  EXPECT_TRUE(memory.holds);
  EXPECT_EQ(rfc3339(memory.since), "2023-11-14T22:14:20Z");
  EXPECT_EQ(rfc3339(pressed->conditions[1].since), "2023-11-14T22:13:20Z");
  EXPECT_TRUE(pressed->state.conditions[0]);
  wall += 60;
  EXPECT_TRUE(look(5000)->conditions[0].holds) << "it outlasts its cause";
  EXPECT_FALSE(look(12'000)->conditions[0].holds);
}

TEST_F(StatusOfNode, IsUpdatedOnTurnsWithoutActions) {
  const Snapshot snapshot = story.snapshot(0, 2_GiB);
  judge(story.policy, snapshot, story.history, story.verdict);
  const Outcome outcome;
  keeper.update(snapshot, story.verdict, {&outcome, 1});
  EXPECT_EQ(keeper.current(), nullptr);
}

TEST_F(StatusOfNode, ReportsWhyAllocatableIsUnknown) {
  NodeOptions greedy = options();
  greedy.reserved.kube.amounts.memory = 8_GiB;
  keeper.reconfigure(greedy, story.policy);
  const auto status = look(0);
  EXPECT_TRUE(status->allocatable.empty());
  EXPECT_NE(status->error.find("Expected capacity >= reservation"), std::string::npos);
  const auto answer = admit_json(status,
                                 "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
                                 "spec: {containers: [{name: c}]}\n");
  EXPECT_FALSE(json::parse(*answer)["pods"][0]["admitted"]) << "unknown is not enough";
}

TEST_F(StatusOfNode, PodsPerCoreMayBeTheLowerLimit) {
  NodeOptions few = options();
  few.pods_per_core = 10;
  keeper.reconfigure(few, story.policy);
  EXPECT_EQ(quantity_in(look(0)->capacity, "pods"), "40");
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(StatusOfNode, IsReadBackFromItsFileUnchanged) {
  story.policy.taints = {
      std::make_shared<const Taint>(Taint{"dedicated", "gpu", TaintEffect::kNoExecute})};
  keeper.reconfigure(options(), story.policy);
  add("web", {.cpu = "1", .memory = "1Gi", .priority = 5});
  Pod ports = pod_asking("dns");
  ports.placement.host_ports = {{53, HostPort::Protocol::kUdp, "10.0.0.1"}};
  story.reading(story.pod("dns", 1_MiB)).pod = std::make_shared<const Pod>(ports);
  const auto status = look(0, 50_MiB);
  TempDir dir;
  const auto path = dir.path() / "node.json";
  { NodeStatusWriter(path, std::chrono::milliseconds(0)).submit(status); }
  auto read = observe::read_nodes(path);
  ASSERT_EQ(read.diagnostics, config::Diagnostics{});
  ASSERT_EQ(read.nodes.size(), 1u);
  NodeState expected = status->state;
  expected.taints = all_taints(status->state);  // a Node bears its conditions as taints
  expected.conditions = {};
  EXPECT_EQ(read.nodes[0], expected);
}

TEST_F(StatusOfNode, HasTheShapeOfANode) {
  const json node = report::node_json(*look(0, 50_MiB));
  EXPECT_EQ(node["kind"], "Node");
  EXPECT_EQ(node["metadata"]["labels"]["zone"], "a");
  EXPECT_EQ(node["spec"]["taints"][0]["key"], "node.kubernetes.io/memory-pressure");
  EXPECT_EQ(node["status"]["allocatable"]["cpu"], "3500m");
  const json& memory = node["status"]["conditions"][0];
  EXPECT_EQ(memory["type"], "MemoryPressure");
  EXPECT_EQ(memory["status"], "True");
  EXPECT_EQ(memory["reason"], "KubeletHasInsufficientMemory");
  EXPECT_EQ(memory["lastTransitionTime"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(node["status"]["conditions"][2]["reason"], "KubeletHasSufficientPID");
}

TEST_F(StatusOfNode, TheFileHasTheLatestStatusAndIsRateLimited) {
  TempDir dir;
  const auto path = dir.path() / "node.json";
  std::uint64_t written = 0;
  {
    NodeStatusWriter file(path, std::chrono::hours(1));
    for (int i = 0; i < 50; ++i) {
      auto status = std::make_shared<report::NodeStatus>();
      status->state.name = "v" + std::to_string(i);
      file.submit(std::move(status));
      if (i == 0)
        while (file.written() == 0)
          std::this_thread::yield();
    }
    written = file.written();
  }
  EXPECT_EQ(written, 1u) << "an hour has not passed";
  EXPECT_EQ(json::parse(text_of(path))["metadata"]["name"], "v49") << "the end writes the rest";
}

TEST_F(StatusOfNode, AFileThatCannotBeWrittenIsCounted) {
  TempDir dir;
  NodeStatusWriter file(dir.path() / "absent/node.json", std::chrono::milliseconds(0));
  file.submit(look(0));
  while (file.failed() + file.written() == 0)
    std::this_thread::yield();
  EXPECT_EQ(file.failed(), 1u);
}

TEST_F(StatusOfNode, AnswersForAThousandPodsAtTheMostAndListsAHundredErrors) {
  const auto status = look(0);
  const auto pods = [](int count, const std::string& spec) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a" + std::to_string(i) +
              "}\nspec: {" + spec + "}\n";
    return text;
  };
  EXPECT_TRUE(admit_json(status, pods(1'000, "containers: [{name: c}]")));
  EXPECT_EQ(admit_json(status, pods(1'002, "containers: [{name: c}]")).error().what,
            "manifest:5002: more than 1000 pods");
  const std::string errors = admit_json(status, pods(250, "containers: []")).error().what;
  EXPECT_EQ(std::ranges::count(errors, '\n'), 100);
  EXPECT_TRUE(errors.ends_with("\nmanifest: and 150 more")) << errors;
}

TEST_F(StatusOfNode, AnswersWhetherAPodWouldBeAdmitted) {
  add("web", {.cpu = "3"});
  const auto status = look(0);
  const auto answer = admit_json(
      status,
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
      "spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"
      "spec: {priority: 2000000000, containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n");
  ASSERT_TRUE(answer);
  const json pods = json::parse(*answer)["pods"];
  EXPECT_FALSE(pods[0]["admitted"]);
  EXPECT_EQ(pods[0]["refusals"][0]["reason"], "OutOfcpu");
  EXPECT_EQ(pods[0]["refusals"][0]["used"], "3");
  EXPECT_TRUE(pods[1]["admitted"]);
  EXPECT_EQ(pods[1]["preemption_victims"][0]["name"], "web");
  EXPECT_FALSE(admit_json(nullptr, ""));
  EXPECT_EQ(admit_json(status, "kind: Job\n").error().what, "manifest:1: kind Job: expected Pod");
  EXPECT_EQ(admit_json(status, "").error().what, "there is no Pod in it");
}

std::string counters_of(const report::AdmissionCounts& counts) {
  std::vector<prometheus::MetricFamily> families;
  counts.append_to(families);
  std::string text;
  for (const prometheus::MetricFamily& family : families)
    for (const prometheus::ClientMetric& metric : family.metric)
      text += family.name + " " + metric.label.front().value + " " +
              std::to_string(static_cast<int>(metric.counter.value)) + "\n";
  return text;
}

TEST_F(StatusOfNode, CountsPodsThatAreNotStartedAndThoseTheyPreempt) {
  add("web", {.cpu = "3"});
  const auto status = look(0);
  const auto pod = [](const std::string& spec, const std::string& requests) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {" + spec +
           "containers: [{name: c, resources: {requests: {" + requests + "}}}]}\n";
  };
  report::AdmissionCounts counts;
  ASSERT_TRUE(admit_json(status, pod("", "cpu: 1")));
  EXPECT_EQ(counters_of(counts), "") << "a question alone is not counted";
  for (const std::string& manifest :
       {pod("", "cpu: 1"), pod("", "cpu: 1"), pod("nodeSelector: {disk: ssd}, ", ""),
        pod("priority: 2000000000, ", "cpu: 1")})
    ASSERT_TRUE(admit_to_start_json(status, manifest, counts));
  EXPECT_FALSE(admit_to_start_json(status, "kind: Job\n", counts));
  for (const char* reason : {"OutOfexample.com/gpu", "OutOfexample.com/nic", "Unknowncpu"})
    counts.count_rejection(reason);
  EXPECT_EQ(counters_of(counts),
            "kubelet_admission_rejections_total NodeAffinity 1\n"
            "kubelet_admission_rejections_total Other 1\n"
            "kubelet_admission_rejections_total OutOfExtendedResources 2\n"
            "kubelet_admission_rejections_total OutOfcpu 2\n"
            "kubelet_preemptions cpu 1\n");
}

TEST(TaintCallTest, ErrorsAreReportedAtOnce) {
  TempDir dir;
  TaintStore keeper(dir.path());
  ASSERT_TRUE(keeper.configure({}));
  EXPECT_EQ(taint_json(keeper, {"a=1:NoExecute"}, false).value(),
            R"({"taints":["a=1:NoExecute"]})");
  EXPECT_EQ(taint_json(keeper, {"x-", "y-"}, false).error().what,
            "taint \"x\" not found\ntaint \"y\" not found");
  EXPECT_FALSE(taint_json(keeper, {"nonsense"}, false));
}

}  // namespace
}  // namespace headroom::daemon
