// SPDX-License-Identifier: Apache-2.0
// What headroom says, word for word.
#include "report/eviction/messages.h"

#include "base/human_readable.h"
#include "report/sample.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;
using namespace headroom::test;

Quantity quantity(const char* text) {
  return *Quantity::parse(text);
}

struct MessageCase {
  const char* name;
  Signal signal;
  std::optional<Quantity> threshold;
  std::optional<Quantity> available;
  std::vector<ContainerUse> uses;
  const char* message;
};

TEST(Messages, PodMessageIsTheKubelets) {
  const MessageCase cases[] = {
      {"nothing known",
       Signal::kMemoryAvailable,
       {},
       {},
       {},
       "The node was low on resource: memory. "},
      {"threshold",
       Signal::kMemoryAvailable,
       quantity("100Mi"),
       quantity("53248Ki"),
       {},
       "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "},
      {"over its request",
       Signal::kMemoryAvailable,
       quantity("1G"),
       quantity("52Mi"),
       {{"app", quantity("1Gi"), quantity("0")}, {"helper", quantity("1Mi"), quantity("2Mi")}},
       "The node was low on resource: memory. Threshold quantity: 1G, available: 52Mi. Container "
       "app was using 1Gi, request is 0, has larger consumption of memory. "},
      {"at its request",
       Signal::kMemoryAvailable,
       {},
       {},
       {{"app", quantity("1Gi"), quantity("1024Mi")}},
       "The node was low on resource: memory. "},
      {"disk",
       Signal::kNodeFsAvailable,
       quantity("10Gi"),
       quantity("1Gi"),
       {{"app", quantity("5Gi"), quantity("1Gi")}},
       "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 1Gi. "
       "Container app was using 5Gi, request is 1Gi, has larger consumption of "
       "ephemeral-storage. "},
      {"inodes list no user",
       Signal::kNodeFsInodesFree,
       quantity("1k"),
       quantity("10"),
       {{"app", quantity("5k"), quantity("0")}},
       "The node was low on resource: inodes. Threshold quantity: 1k, available: 10. "},
      {"pids list no user",
       Signal::kPidAvailable,
       {},
       {},
       {{"app", quantity("5k"), quantity("0")}},
       "The node was low on resource: pids. "},
  };
  for (const MessageCase& c : cases)
    EXPECT_EQ(pod_message(c.signal, c.threshold, c.available, c.uses), c.message) << c.name;
}

TEST(Messages, AmountsHaveTheKubeletsFormat) {
  EXPECT_EQ(quantity_of(Signal::kMemoryAvailable, (100_MiB).count).canonical(), "100Mi");
  EXPECT_EQ(quantity_of(Signal::kPidAvailable, 32000).canonical(), "32k");
}

TEST(Messages, ConditionsTurnWithTheKubeletsReasons) {
  struct Case {
    Condition condition;
    const char* raised;
    const char* cleared;
  };
  for (const Case& c :
       {Case{Condition::kMemoryPressure, "NodeHasInsufficientMemory", "NodeHasSufficientMemory"},
        Case{Condition::kDiskPressure, "NodeHasDiskPressure", "NodeHasNoDiskPressure"},
        Case{Condition::kPidPressure, "NodeHasInsufficientPID", "NodeHasSufficientPID"},
        Case{Condition::kCpuPressure, "NodeHasInsufficientCPU", "NodeHasSufficientCPU"}}) {
    EXPECT_EQ(condition_reason(c.condition, true), c.raised);
    EXPECT_EQ(condition_reason(c.condition, false), c.cleared);
  }
  EXPECT_EQ(condition_line(Condition::kMemoryPressure, true),
            "NodeHasInsufficientMemory: MemoryPressure is now true");
}

TEST(Messages, AThresholdMetNamesWhatWasRead) {
  EXPECT_EQ(threshold_line(Signal::kMemoryAvailable, true, (100_MiB).count, (52_MiB).count),
            "EvictionThresholdMet: Attempting to reclaim memory: memory.available 52Mi, below its "
            "hard threshold of 100Mi");
}

TEST(Messages, AnOutcomeIsOneLine) {
  Decision kill = sample_eviction().decision;
  Decision terminate = kill;
  terminate.act = Act::kTerminate;
  terminate.reason.hard = false;
  terminate.deadline = terminate.decided_at + 30s;
  using enum Outcome::Result;
  const std::string who = "default/hog (BestEffort, 1Gi over its request of 0)";
  const std::string hard = "memory.available 52Mi, below its hard threshold of 100Mi";
  const std::string soft = "memory.available 52Mi, below its soft threshold of 100Mi";
  const struct {
    Outcome outcome;
    std::string line;
  } cases[] = {
      {{kill, kDone, 0, {}}, "killed " + who + ": " + hard},
      {{terminate, kDone, 0, {}}, "asked " + who + " to end, SIGKILL in 30s: " + soft},
      {{kill, kGone, 0, {}}, who + " was gone before it could be evicted"},
      {{kill, kFailed, EPERM, {}}, "could not evict " + who + ": Operation not permitted"},
      {{kill, kDryRun, 0, {}}, "would evict " + who + ": " + hard},
  };
  for (const auto& c : cases)
    EXPECT_EQ(outcome_line(c.outcome, "BestEffort"), c.line);
}

Part container_part(bool group = false) {
  return {.unit = EvictionUnit::kContainer, .cgroup = CgroupId{9}, .group = group};
}

Part process_part() {
  Part part{.unit = EvictionUnit::kProcess, .cgroup = CgroupId{9}, .process = {4711, 5}};
  std::string("java").copy(part.comm.data(), 4);
  return part;
}

TEST(Messages, APartIsNamedAndNotCalledEvicted) {
  Decision kill = sample_eviction().decision;
  using enum Outcome::Result;
  const std::string who = "default/hog (BestEffort, 1Gi over its request of 0)";
  const std::string hard = "memory.available 52Mi, below its hard threshold of 100Mi";
  kill.part = container_part();
  EXPECT_EQ(outcome_line({kill, kDone, 0, {}}, "BestEffort"),
            "killed a container of " + who + ": " + hard);
  EXPECT_EQ(outcome_line({kill, kDryRun, 0, {}}, "BestEffort"),
            "would kill a container of " + who + ": " + hard);
  kill.part = container_part(true);
  EXPECT_EQ(outcome_line({kill, kGone, 0, {}}, "BestEffort"),
            "a cgroup that dies as one of " + who + " was gone before it could be killed");
  kill.part = process_part();
  EXPECT_EQ(outcome_line({kill, kFailed, EPERM, {}}, "BestEffort"),
            "could not kill process 4711 (java) of " + who + ": Operation not permitted");
  Eviction eviction = sample_eviction();
  eviction.decision.part = process_part();
  EXPECT_EQ(ending_line(eviction),
            "killed process 4711 (java) of default/hog: gone 85ms after its signal, 1Gi returned");
}

TEST(Messages, AStepOfTheLadderIsOneLine) {
  Decision step = sample_eviction().decision;
  using enum Outcome::Result;
  step.act = Act::kReclaimCache;
  step.bytes = 64_MiB;
  step.reason.threshold = (300_MiB).count;
  const std::string take = "take 64Mi of page cache from default/hog";
  EXPECT_EQ(ladder_line({step, kStarted, 0, {}}),
            "ladder: " + take + ": memory.available 52Mi, below 300Mi");
  EXPECT_EQ(ladder_line({step, kDryRun, 0, {}}),
            "ladder: would " + take + ": memory.available 52Mi, below 300Mi");
  EXPECT_EQ(ladder_line({step, kDone, EAGAIN, {}}), "ladder: " + take + ": there was less");
  step.act = Act::kLowerMemoryHigh;
  step.bytes = 1_GiB;
  EXPECT_EQ(ladder_line({step, kFailed, EAGAIN, {}}),
            "ladder: cannot hold default/hog at 1Gi by memory.high: Resource temporarily "
            "unavailable");
  step.act = Act::kRestoreMemoryHigh;
  step.bytes.reset();
  EXPECT_EQ(ladder_line({step, kStarted, 0, {}}),
            "ladder: put the memory.high of default/hog back to no limit");
  step.act = Act::kRaiseMemoryHigh;
  step.part = container_part();
  step.bytes = 60_MiB;
  step.reason.cause = Cause::kStuck;
  step.reason.threshold = (40_MiB).count;
  step.reason.first_crossed = step.reason.sampled_at - 30s;
  EXPECT_EQ(ladder_line({step, kStarted, 0, {}}),
            "ladder: raise the memory.high of a container of default/hog to 60Mi: it waits at its "
            "memory.high of 40Mi for 30s");
}

TEST(Messages, AnEndingSaysHowLongItTookAndWhatCameBack) {
  Eviction eviction = sample_eviction();
  EXPECT_EQ(ending_line(eviction), "evicted default/hog: gone 85ms after its signal, 1Gi returned");
  eviction.ending = Ending::kTimedOut;
  eviction.memory_returned.reset();
  EXPECT_EQ(ending_line(eviction),
            "default/hog still has processes 85ms after its signal, an unknown amount returned");
}

TEST(Messages, RequestsAreComparedBothWays) {
  constexpr Signal kMemory = Signal::kMemoryAvailable;
  EXPECT_EQ(over_request(kMemory, (300_MiB).count, (200_MiB).count),
            "100Mi over its request of 200Mi");
  EXPECT_EQ(over_request(kMemory, (100_MiB).count, (200_MiB).count),
            "100Mi under its request of 200Mi");
  EXPECT_EQ(over_request(kMemory, std::nullopt, 0), "usage unknown, request 0");
  EXPECT_EQ(over_request(Signal::kPidAvailable, 5000, 0), "5000 tasks");
  EXPECT_EQ(over_request(Signal::kCpuPressure, 1500, 250), "1.50 CPUs for a request of 0.25 CPUs");
  EXPECT_EQ(over_request(Signal::kCpuPressure, std::nullopt, 250), "usage unknown");
  EXPECT_EQ(over_request(Signal::kNodeFsInodesFree, 70, 0), "70 inodes");
  EXPECT_EQ(over_request(Signal::kPidAvailable, std::nullopt, 0), "usage unknown");
}

TEST(Messages, ALimitHasTheKubeletsMessage) {
  Pod pod;
  pod.name = "db";
  Volume cache;
  cache.name = "cache";
  cache.size_limit = quantity("1G");
  pod.volumes = {cache};
  Container app;
  app.name = "app";
  pod.containers = {app};
  Reason reason;
  reason.threshold = 1 << 30;
  reason.used = std::int64_t{3} << 30;
  const struct {
    StorageLimit limit;
    const char* message;
    const char* reason_text;
  } cases[] = {
      {StorageLimit::kEmptyDir, "Usage of EmptyDir volume \"cache\" exceeds the limit \"1G\". ",
       "emptyDir cache uses 3Gi, over its limit of 1Gi"},
      {StorageLimit::kPod,
       "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
       "the pod uses 3Gi, over its limit of 1Gi"},
      {StorageLimit::kContainer,
       "Container app exceeded its local ephemeral storage limit \"1Gi\". ",
       "container app uses 3Gi, over its limit of 1Gi"}};
  for (const auto& c : cases) {
    reason.limit = c.limit;
    EXPECT_EQ(limit_message(reason, pod), c.message);
    EXPECT_EQ(reason_text(reason, &pod), c.reason_text);
  }
}

TEST(Messages, ReclaimSaysWhatAndHowItEnded) {
  Outcome outcome;
  outcome.decision.act = Act::kReclaim;
  outcome.decision.steps = {.containers = true, .images = true};
  outcome.decision.reason.signal = Signal::kNodeFsAvailable;
  outcome.decision.reason.threshold = 1 << 30;
  outcome.decision.reason.available = 1 << 20;
  outcome.at = outcome.decision.decided_at + 3s;
  outcome.result = Outcome::Result::kStarted;
  EXPECT_EQ(reclaim_line(outcome),
            "reclaiming dead containers and unused images: nodefs.available 1Mi, below its hard "
            "threshold of 1Gi");
  outcome.result = Outcome::Result::kDone;
  EXPECT_EQ(reclaim_line(outcome), "reclaimed dead containers and unused images in 3s");
  outcome.error = Outcome::kExitStatus | 2;
  EXPECT_EQ(reclaim_line(outcome),
            "reclaiming dead containers and unused images failed after 3s: exit status 2");
  outcome.decision.steps.containers = false;
  outcome.error = ETIMEDOUT;
  EXPECT_EQ(reclaim_line(outcome), "reclaiming unused images failed after 3s: its time was up");
}

TEST(Human, Bytes) {
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "0"},           {1023, "1023"},
      {1024, "1Ki"},      {(1_GiB).count * 6 / 5, "1.2Gi"},
      {-3 << 20, "-3Mi"}, {(512_MiB).count, "512Mi"},
      {INT64_MAX, "8Ei"}, {INT64_MIN, "-8Ei"}};
  for (const auto& [count, text] : cases)
    EXPECT_EQ(human_bytes(count), text);
}

TEST(Human, Durations) {
  const std::pair<Duration, const char*> cases[] = {
      {0s, "0s"},      {850us, "850us"},    {12ms, "12ms"}, {1500ms, "1.5s"}, {45s, "45s"},
      {200s, "3m20s"}, {2h + 5min, "2h5m"}, {76h, "3d4h"},  {-2s, "-2s"},     {60s, "1m"}};
  for (const auto& [duration, text] : cases)
    EXPECT_EQ(human(duration), text);
}

}  // namespace
}  // namespace headroom::report
