// SPDX-License-Identifier: Apache-2.0
// headroomctl advise: use read from a recording, and what is printed of it.
#include "ctl/advise/pod_use.h"

#include <headroom/cgroup_record.h>

#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;

Instant at(int second) {
  return Instant(1h + std::chrono::seconds(second));
}

// Two minutes of a pod that uses half a CPU at a quota of half a CPU, and 100 MiB of memory.
std::string recorded_tape() {
  auto pod = std::make_shared<Pod>();
  pod->uid = "u", pod->name = "web", pod->pod_namespace = "default";
  Container& container = pod->containers.emplace_back();
  container.name = "app";
  container.requests.emplace("cpu", *Quantity::parse("100m"));
  container.requests.emplace("memory", *Quantity::parse("64Mi"));
  std::string tape;
  recording::TapeWriter writer;
  recording::TapeWriter::header(tape, {.version = "test"});
  writer.baseline(tape, at(0), Policy{}, History{}, 0);
  hr_record record = unknown_record(7, 1);
  record.valid =
      HR_CPU | HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_THROTTLE | HR_CPU_LIMITS | HR_MEMORY_LIMITS;
  record.memory_usage = 100 * kMiB, record.inactive_file = 0;
  record.memory_max = HR_NO_LIMIT;
  record.cpu_quota_us = 50'000, record.cpu_period_us = 100'000;
  record.cpu_usage_ns = record.throttled_ns = record.nr_periods = record.nr_throttled = 0;
  Verdict verdict;
  for (int second = 0; second <= 120; ++second) {
    const std::vector<PodReading> pods{
        {.pod = pod, .cgroup = CgroupId{7}, .record = &record, .memory_request = {}}};
    Snapshot snapshot;
    snapshot.at = at(second);
    snapshot.cgroups.emplace();
    snapshot.pods = pods;
    verdict.decisions.clear();
    writer.turn(tape, snapshot, verdict, {});
    record.cpu_usage_ns += 500'000'000, record.throttled_ns += 500'000'000;
    record.nr_periods += 10, record.nr_throttled += 10;
  }
  writer.end(tape, at(121), 0);
  return tape;
}

TEST(AdviseCommand, PrintsWhatARecordingAsksFor) {
  auto tape = recording::TapeReader::open(recorded_tape());
  ASSERT_TRUE(tape);
  const auto pods = read_pod_use(*tape);
  ASSERT_TRUE(pods);
  EXPECT_EQ(
      render_advice(*pods, {}),
      "POD          MEMORY REQUEST  MEMORY LIMIT  CPU REQUEST   CPU QUOTA\n"
      "default/web   64Mi -> 110Mi    - -> 120Mi   0.1 -> 0.5  0.5 -> 1.1\n"
      "\n"
      "default/web: 120 samples in 2m; memory 100Mi median, 100Mi 95%, 100Mi at most, over its "
      "request 100.0% of the time; CPUs 0.50 median, 0.50 90%, 0.50 99%, throttled in 100.0% "
      "of its periods\n");
  const auto json = nlohmann::json::parse(advice_json(*pods));
  EXPECT_EQ(json[0]["cpu_quota"]["present"], 0.5);
  EXPECT_EQ(json[0]["cpu_quota"]["advised"], 1.1);
  EXPECT_EQ(json[0]["memory_limit"]["present"], nullptr);
  EXPECT_EQ(json[0]["evidence"]["samples"], 120);
}

TEST(AdviseCommand, AnEmptyRecordingHasNoPods) {
  std::string tape;
  recording::TapeWriter::header(tape, {.version = "test"});
  auto reader = recording::TapeReader::open(tape);
  ASSERT_TRUE(reader);
  EXPECT_EQ(render_advice(*read_pod_use(*reader), {}), "no pods in the recording\n");
}

}  // namespace
}  // namespace headroom::ctl
