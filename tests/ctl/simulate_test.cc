// SPDX-License-Identifier: Apache-2.0
// What headroomctl simulate prints: the table, JSON and picture of a fleet, the comparison of
// recordings, and the table of predictors.
#include "ctl/simulate/simulate.h"

#include "config/config.h"
#include "ctl/simulate/trace_files.h"
#include "support/story.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

using namespace std::chrono_literals;
using simulate::AgentKind;
using simulate::FleetEvent;
using simulate::FleetResult;

SimulatedFleet fleet() {
  SimulatedFleet fleet;
  fleet.source = "generated pods";
  return fleet;
}

std::vector<FleetResult> two_results() {
  FleetResult headroom, kubelet;
  headroom.agent = AgentKind::kHeadroom;
  headroom.placed = 22'979;
  headroom.totals.evictions = 214;
  headroom.totals.latencies = {1ms, 2ms, 3ms};
  headroom.samples = {{Instant{}, 0.5, 0}, {Instant{12h}, 0.75, 2}};
  headroom.incidents = {{FleetEvent::Kind::kEvicted, Instant{6h}, 3, QosClass::kBestEffort}};
  kubelet.agent = AgentKind::kKubelet;
  kubelet.totals.kernel_ooms = 23;
  kubelet.incidents = {{FleetEvent::Kind::kKernelOom, Instant{23h}, 1, QosClass::kBurstable}};
  return {headroom, kubelet};
}

TEST(SimulateText, HasAColumnForEachAgent) {
  const std::string text = render_fleet(fleet(), two_results(), {});
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "100 nodes of 64Gi and 16 CPUs, 1d, 1,500 pods at a time, generated pods, seed 1");
  EXPECT_NE(text.find("22,979"), std::string::npos);
  EXPECT_NE(text.find("kernel OOM kills                       0       23"), std::string::npos)
      << text;
  EXPECT_NE(text.find("time to decide: median               2ms        -"), std::string::npos)
      << text;
}

TEST(SimulateText, AsJson) {
  const auto json = nlohmann::json::parse(fleet_json(fleet(), two_results()));
  EXPECT_EQ(json["nodes"], 100);
  EXPECT_EQ(json["agents"][0]["agent"], "headroom");
  EXPECT_EQ(json["agents"][0]["decision_seconds"]["p50"], 0.002);
  EXPECT_EQ(json["agents"][0]["memory_used_ratio"], 0.625);
  EXPECT_TRUE(json["agents"][1]["decision_seconds"]["p50"].is_null()) << "unknown is not zero";
  EXPECT_EQ(json["agents"][1]["kernel_oom_kills"], 23);
}

TEST(SimulateText, ThePictureShowsEachEvictionAndKill) {
  const std::string svg = fleet_svg(fleet(), two_results());
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  const auto count = [&](std::string_view text) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count("class=\"oom\" x="), 1u);
  EXPECT_EQ(count("fill=\"#0072b2\"/>"), 1u) << "one eviction";
  EXPECT_EQ(count("<text"), count("</text>"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SimulateText, APictureOfNothingIsStillAPicture) {
  FleetResult empty;
  const std::string svg = fleet_svg(fleet(), {empty});
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

class RecordingFile {
 public:
  RecordingFile(const std::string& name, const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("headroom-test-" + std::to_string(::getpid()) + name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~RecordingFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A pod takes 100 MiB a second, and is killed below 100 MiB.
std::string filled_node() {
  Policy policy;
  policy.mode = Mode::kEnforce;
  policy.thresholds = {test::memory_below(100_MiB)};
  test::Story story(policy);
  const auto hog = story.pod("hog", 0_B);
  for (std::int64_t ms = 0; ms <= 10'200; ms += 100) {
    const std::int64_t held = ms / 10 << 20;
    story.record(hog).memory_usage = static_cast<std::uint64_t>(held);
    story.step(ms, Bytes{(1100_MiB).count - held});
  }
  return story.recorded();
}

TEST(SimulateRecordings, TellWhatAnotherThresholdWouldHaveDone) {
  const RecordingFile one("-one.rec", filled_node()), two("-two.rec", filled_node());
  config::Config other;
  other.policy.mode = Mode::kEnforce;
  other.policy.thresholds = {test::memory_below(300_MiB)};
  const auto nodes = replay_nodes({one.path(), two.path()}, policy_override(other), 2);
  ASSERT_TRUE(nodes);
  const auto json = nlohmann::json::parse(nodes_json(*nodes))["recordings"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["file"], two.path()) << "in the order of the command line";
  EXPECT_EQ(json[0]["evicted"], 1);
  EXPECT_EQ(json[0]["would_be_evicted"], 1);
  EXPECT_EQ(json[0]["spared"], 0);
  EXPECT_EQ(json[0]["earlier_seconds"], 2.0);
  const std::string text = render_nodes(*nodes, {});
  EXPECT_NE(text.find("2s earlier"), std::string::npos) << text;
  EXPECT_NE(text.find("all "), std::string::npos);

  other.policy.thresholds = {test::memory_below(1_MiB)};
  const auto spared = replay_nodes({one.path()}, policy_override(other), 1);
  ASSERT_TRUE(spared);
  EXPECT_EQ(nlohmann::json::parse(nodes_json(*spared))["recordings"][0]["spared"], 1);
}

TEST(SimulateRecordings, EveryUnreadableFileIsReported) {
  const RecordingFile text(".txt", "no recording");
  const auto nodes = replay_nodes({text.path(), "/nonexistent"}, nullptr, 2);
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error(),
            (std::vector<std::string>{text.path() + ": not a recording",
                                      "read /nonexistent: No such file or directory"}));
}

TEST(SimulateTraces, EveryWrongOptionIsReported) {
  const RecordingFile broken(".csv", "value,timestamp,name\nx,1,a\n0.5,y,a\n");
  Traces traces;
  Errors errors;
  read_trace_option("memory-share=" + broken.path(), false, traces, errors);
  read_trace_option("csv=" + broken.path(), false, traces, errors);
  read_trace_option("azure-v1=" + broken.path(), false, traces, errors);
  read_trace_option("azure-v2=/nonexistent", false, traces, errors);
  EXPECT_EQ(errors.all(),
            (std::vector<std::string>{
                broken.path() + ":2: value is \"x\": expected a number of zero or more",
                broken.path() + ":3: timestamp is \"y\": expected a number of zero or more",
                "--trace csv=" + broken.path() +
                    ": expected FORMAT=FILE, where FORMAT is one of memory-share, alibaba-2018, "
                    "google-2019, azure-v2, azure-v1, recording",
                "--trace azure-v1=" + broken.path() + ": expected azure-v1=ARRIVALS,FLAVOURS",
                "read /nonexistent: No such file or directory"}));
}

TEST(SimulateTraces, LinesWithErrorsAreLeftOutOnRequest) {
  const RecordingFile broken(".csv", "value,timestamp,name\nx,1,a\n0.5,2,a\n");
  Traces traces;
  Errors errors;
  read_trace_option("memory-share=" + broken.path(), true, traces, errors);
  EXPECT_FALSE(errors.any());
  ASSERT_EQ(traces.series.size(), 1u);
  EXPECT_EQ(traces.series[0]->values, std::vector<double>{0.5});
}

TEST(SimulatePredict, PrintsEachPredictorBesideTheOracle) {
  simulate::Evaluation found{.oracle = 0.5, .predictions = 100, .pods = 30};
  found.scores = {{.name = "maximum", .savings = 0.45, .violations = 0.031, .worst = -0.2}};
  const simulate::EvaluationOptions options;
  const std::string text = render_evaluation(options, found, {});
  EXPECT_NE(text.find("oracle     50.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("maximum    45.0 %         90.0 %   3.10 %"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(evaluation_json(options, found));
  EXPECT_EQ(json["predictors"][0]["of_oracle_ratio"], 0.9);
  EXPECT_EQ(json["predictors"][0]["worst_ratio"], 0);
}

}  // namespace
}  // namespace headroom::ctl
