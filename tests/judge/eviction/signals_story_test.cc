// SPDX-License-Identifier: Apache-2.0
// Evictions for what is not memory: tasks, swap, disks; and what is done before and after a pod.
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace test;
using std::chrono::seconds;
using Lines = std::vector<std::string>;
const Lines kNothing;
constexpr auto kNodeFs = Signal::kNodeFsAvailable;
constexpr auto kImageFs = Signal::kImageFsAvailable;
constexpr auto kInodes = Signal::kNodeFsInodesFree;
constexpr auto kPids = Signal::kPidAvailable;
constexpr auto kSwap = Signal::kSwapAvailable;
constexpr std::int64_t kGiB = 1 << 30;

Policy enforcing(std::vector<Threshold> thresholds) {
  Policy policy;
  policy.thresholds = std::move(thresholds);
  policy.mode = Mode::kEnforce;
  return policy;
}

bool raised(const Story& story, Condition condition) {
  return story.verdict.conditions[static_cast<std::size_t>(condition)];
}

// --- tasks -----------------------------------------------------------------------------------

TEST(Pids, LowerPriorityFirstThenMoreTasksWhateverTheMemory) {
  Story story(enforcing({below(kPids, 1000)}));
  const auto hoarder = story.pod("important", 1_MiB, 0_B, 5);
  story.record(hoarder).pids_current = 30'000;
  const auto threads = story.pod("threads", 1_MiB, 4_GiB);
  story.record(threads).pids_current = 9'000;
  story.pod("memory-hog", 3_GiB);
  story.step(0, {{kPids, 500, 32'768}});
  EXPECT_EQ(story.decided(), Lines{"kill threads"});
  EXPECT_EQ(story.verdict.decisions[0].rank_info.usage, 9'000);
  EXPECT_TRUE(raised(story, Condition::kPidPressure));
}

TEST(Pids, APodWithUnknownTasksIsSkipped) {
  Story story(enforcing({below(kPids, 1000)}));
  const auto dark = story.pod("dark", 1_MiB);
  story.record(dark).valid &= ~static_cast<unsigned>(HR_PIDS);
  story.record(story.pod("seen", 1_MiB)).pids_current = 900;
  story.step(0, {{kPids, 500, 32'768}});
  EXPECT_EQ(story.decided(), Lines{"kill seen"});
}

// --- swap ------------------------------------------------------------------------------------

TEST(Swap, MemoryAndSwapAboveRequestTogetherDecide) {
  Story story(enforcing({below(kSwap, kGiB)}));
  story.pod("resident", 1_GiB);
  const auto swapped = story.pod("swapped", 1_MiB);
  story.record(swapped).swap_usage = 2 * kGiB;
  story.step(0, {{kSwap, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill swapped"});
  EXPECT_TRUE(raised(story, Condition::kMemoryPressure));
}

TEST(Swap, SwapTurnedOffNeitherTripsNorClears) {
  Policy policy = enforcing({below(kSwap, kGiB, seconds(10))});
  Story story(policy);
  story.record(story.pod("hog", 1_GiB)).swap_usage = kGiB;
  story.step(0, {{kSwap, kGiB / 2}});
  story.step(5'000, {});  // swapoff: unknown
  EXPECT_EQ(story.decided(), kNothing);
  story.step(10'000, {{kSwap, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill hog"}) << "its clock went on";
}

// --- several at once -------------------------------------------------------------------------

TEST(Order, MemoryFirstThenSwapThenTheRest) {
  Story story(enforcing({below(kPids, 1000), below(kSwap, kGiB), memory_below(200_MiB)}));
  story.pod("hog", 2_GiB);
  const auto bomb = story.pod("bomb", 1_MiB);
  story.record(bomb).pids_current = 20'000;
  story.step(0, {{kPids, 10, 32'768}, {kSwap, 0}, {Signal::kMemoryAvailable, 0}});
  ASSERT_EQ(story.decided(), Lines{"kill hog"});
  EXPECT_EQ(story.verdict.decisions[0].reason.signal, Signal::kMemoryAvailable);
  story.remove_pod(0);
  story.step(10, {{kPids, 10, 32'768}, {kSwap, 3 * kGiB}, {Signal::kMemoryAvailable, 3 * kGiB}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"});
}

TEST(Order, OfTwoThresholdsOfOneSignalTheHardOne) {
  Story story(enforcing({below(kPids, 2000, seconds(1)), below(kPids, 1000)}));
  story.policy.max_pod_grace = seconds(30);
  story.pod("bomb", 1_MiB);
  story.step(0, {{kPids, 900, 32'768}});
  story.remove_pod(0);
  story.record(story.pod("bomb2", 1_MiB)).pids_current = 900;
  story.step(1'500, {{kPids, 900, 32'768}});
  ASSERT_EQ(story.decided(), Lines{"kill bomb2"});
  EXPECT_TRUE(story.verdict.decisions[0].reason.hard);
}

TEST(Order, ASoftThresholdThatRecoversForOneSampleRestarts) {
  Story story(enforcing({below(kNodeFs, kGiB, seconds(30))}));
  const auto hog = story.pod("hog", 1_MiB);
  story.uses_disk(hog, 0, 1_GiB);
  story.step(0, {{kNodeFs, kGiB / 2}});
  story.step(29'000, {{kNodeFs, 2 * kGiB}});
  story.step(30'000, {{kNodeFs, kGiB / 2}});
  story.step(59'999, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing);
  story.uses_disk(hog, 59'000, 1_GiB);
  story.step(60'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(Order, PercentagesOnOddCapacities) {
  Policy policy = enforcing({});
  policy.thresholds = {{.signal = kPids, .value = Fraction{0.1F}, .grace = {}, .min_reclaim = {}}};
  Story story(policy);
  story.pod("bomb", 1_MiB);
  story.step(0, {{kPids, 3276, 32'767}});  // 10 % of 32767, in float32, truncated: 3276
  EXPECT_EQ(story.decided(), kNothing) << "equal is not below";
  story.step(10, {{kPids, 3275, 32'767}});
  EXPECT_EQ(story.decided(), Lines{"kill bomb"});
}

// --- disks -----------------------------------------------------------------------------------

TEST(Disk, NoPodIsChosenBeforeItIsMeasured) {
  Story story(enforcing({below(kNodeFs, kGiB)}));
  const auto logger = story.pod("logger", 1_MiB);
  const auto idle = story.pod("idle", 1_MiB);
  story.uses_disk(idle, 900, 1_MiB);
  story.step(1'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing);
  EXPECT_TRUE(story.verdict.measure_disks);
  story.uses_disk(idle, 1'500, 1_MiB);
  story.uses_disk(logger, 1'600, 9_GiB);
  story.step(2'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill logger"});
  EXPECT_TRUE(raised(story, Condition::kDiskPressure));
}

TEST(Disk, AfterTheTimeoutMeasuredPodsAreRanked) {
  Story story(enforcing({below(kNodeFs, kGiB)}));
  story.pod("dark", 1_MiB);
  const auto known = story.pod("known", 1_MiB);
  story.uses_disk(known, 0, 1_GiB);
  story.step(1'000, {{kNodeFs, kGiB / 2}});
  story.step(30'999, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing);
  story.step(31'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill known"});
}

TEST(Disk, InodesAreRankedByInodes) {
  Story story(enforcing({below(kInodes, 1000)}));
  const auto big = story.pod("big", 1_MiB);
  const auto many = story.pod("many", 1_MiB);
  story.uses_disk(big, 1, 9_GiB, 3);
  story.uses_disk(many, 1, 1_MiB, 50'000);
  story.step(1, {{kInodes, 10, 100'000}});
  EXPECT_EQ(story.decided(), Lines{"kill many"});
}

TEST(Disk, ASampleFromBeforeTheEvictionEndIsIgnored) {
  Story story(enforcing({below(kNodeFs, kGiB)}));
  for (const char* name : {"first", "second"})
    story.uses_disk(story.pod(name, 1_MiB), 1, 1_GiB);
  story.step(1, {{kNodeFs, kGiB / 2}});
  ASSERT_EQ(story.decided(), Lines{"kill first"});
  story.remove_pod(0);
  story.step(100, {{kNodeFs, kGiB / 2}});
  ASSERT_EQ(story.verdict.eviction_ends.size(), 1U);
  EXPECT_EQ(story.decided(), kNothing) << "what it held may not show yet";
  story.step(1'100, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing);
  story.step(1'101, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill second"});
}

std::shared_ptr<const Pod> with_empty_dir(const PodReading& reading) {
  Pod pod = *reading.pod;
  Volume volume;
  volume.name = "data";
  volume.kind = Volume::Kind::kEmptyDir;
  volume.size_limit = Quantity::of(kGiB, Quantity::Format::kBinarySI);
  pod.volumes = {volume};
  return std::make_shared<const Pod>(pod);
}

TEST(Disk, AnEvictedPodsEmptyDirsAreRemovedBeforeAnotherIsChosen) {
  Story story(enforcing({below(kNodeFs, kGiB)}));
  story.policy.local_storage_isolation = false;
  for (const char* name : {"first", "second"}) {
    const auto pod = story.pod(name, 1_MiB);
    story.reading(pod).pod = with_empty_dir(story.reading(pod));
    story.uses_disk(pod, 1, 2_GiB);
  }
  story.step(1, {{kNodeFs, kGiB / 2}});
  ASSERT_EQ(story.decided(), Lines{"kill first"});
  story.remove_pod(0);
  story.step(100, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"remove first"});
  story.step(9'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing) << "still removing";
  story.ended(Act::kRemove, 9'500);
  story.step(9'600, {{kNodeFs, 3 * kGiB}});
  EXPECT_EQ(story.verdict.eviction_ends.size(), 1U);
  EXPECT_EQ(story.verdict.eviction_ends[0].ended_at, at_ms(100)) << "when no process was left";
  story.step(20'000, {{kNodeFs, 3 * kGiB}});
  EXPECT_EQ(story.decided(), kNothing) << "one was enough";
}

TEST(Disk, AStuckVictimIsWaitedFor30SecondsAndItsFilesRemovedOnExit) {
  Story story(enforcing({below(kNodeFs, kGiB)}));
  story.policy.local_storage_isolation = false;
  for (const char* name : {"stuck", "next"}) {
    const auto pod = story.pod(name, 1_MiB);
    story.reading(pod).pod = with_empty_dir(story.reading(pod));
    story.uses_disk(pod, 1, 2_GiB);
  }
  story.step(1, {{kNodeFs, kGiB / 2}});
  story.step(30'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing) << "it writes to a disk that is full";
  story.step(30'001, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill next"});
  story.remove_pod(0);
  story.step(33'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"remove stuck"});
  EXPECT_TRUE(story.verdict.eviction_ends.empty()) << "its end was reported before";
}

TEST(Disk, ARemovalDoesNotHoldUpMemory) {
  Story story(enforcing({below(kNodeFs, kGiB), memory_below(200_MiB)}));
  story.policy.local_storage_isolation = false;
  const auto files = story.pod("files", 1_MiB);
  story.reading(files).pod = with_empty_dir(story.reading(files));
  story.uses_disk(files, 1, 2_GiB);
  const auto hog = story.pod("hog", 2_GiB);
  story.uses_disk(hog, 1, 0_B);
  story.step(1, {{kNodeFs, kGiB / 2}});
  ASSERT_EQ(story.decided(), Lines{"kill files"});
  story.remove_pod(0);
  story.step(100, {{kNodeFs, kGiB / 2}});
  story.step(200, {{kNodeFs, kGiB / 2}, {Signal::kMemoryAvailable, 0}});
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(Disk, NoEvictionForADedicatedImageFilesystem) {
  Story story(enforcing({below(kImageFs, kGiB), below(kPids, 1000), below(kNodeFs, kGiB)}));
  story.images = {.dedicated = true, .split = true};
  story.uses_disk(story.pod("web", 1_MiB), 1, 1_GiB);
  story.record(0).pids_current = 2000;
  story.step(1, {{kImageFs, kGiB / 2}, {kPids, 30'000, 32'768}, {kNodeFs, 2 * kGiB}});
  EXPECT_EQ(story.decided(), kNothing);
  EXPECT_TRUE(raised(story, Condition::kDiskPressure));
  story.step(100, {{kImageFs, kGiB / 2}, {kPids, 10, 32'768}, {kNodeFs, 2 * kGiB}});
  EXPECT_EQ(story.decided(), Lines{"kill web"}) << "and no other pod waits for it";
}

TEST(Disk, ThreeFilesystemsEachHaveTheirOwn) {
  Story story(enforcing({below(kNodeFs, kGiB), below(Signal::kContainerFsAvailable, kGiB)}));
  story.images = {.dedicated = true, .split = true, .apart = true};
  story.uses_disk(story.pod("volume", 1_MiB), 1, 2_GiB);
  story.pod("layer", 1_MiB);
  const auto writes_layer = [&story](std::size_t pod, std::int64_t ms) {
    story.uses_disk(pod, ms, 0_B, 0);
    story.disk(pod).containers = {{.name = "c", .rootfs = {9_GiB, 9}, .logs = {}}};
  };
  writes_layer(1, 1);
  story.step(1, {{kNodeFs, kGiB / 2}, {Signal::kContainerFsAvailable, 2 * kGiB}});
  EXPECT_EQ(story.decided(), Lines{"kill volume"}) << "the layer is elsewhere";
  story.remove_pod(0);
  story.step(100, {{kNodeFs, 2 * kGiB}, {Signal::kContainerFsAvailable, 2 * kGiB}});
  story.step(5'000, {{kNodeFs, 2 * kGiB}, {Signal::kContainerFsAvailable, kGiB / 2}});
  writes_layer(0, 5'000);
  story.step(5'100, {{kNodeFs, 2 * kGiB}, {Signal::kContainerFsAvailable, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill layer"});
}

// --- node-level reclaim ----------------------------------------------------------------------

Policy reclaiming() {
  Policy policy = enforcing({below(kNodeFs, kGiB), memory_below(200_MiB, seconds(3600))});
  policy.can_reclaim_containers = true;
  policy.can_reclaim_images = true;
  return policy;
}

TEST(NodeReclaim, ComesBeforeAnyEviction) {
  Story story(reclaiming());
  story.uses_disk(story.pod("hog", 1_MiB), 1, 1_GiB);
  story.step(1, {{kNodeFs, kGiB / 2}});
  ASSERT_EQ(story.decided(), Lines{"reclaim"});
  EXPECT_EQ(story.verdict.decisions[0].steps, (ReclaimSteps{.containers = true, .images = true}));
  story.step(5'000, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), kNothing) << "it is under way";
  story.ended(Act::kReclaim, 6'000);
  // A soft threshold of memory is met all the while: upstream would evict for it.
  story.step(8'000, {{kNodeFs, 2 * kGiB}, {Signal::kMemoryAvailable, 1 << 20}});
  EXPECT_EQ(story.decided(), kNothing);
}

TEST(NodeReclaim, IfInsufficientIsFollowedByAnEvictionAndRetried) {
  for (const int error : {0, 5}) {
    Story story(reclaiming());
    for (const char* name : {"first", "second"})
      story.uses_disk(story.pod(name, 1_MiB), 1, 1_GiB);
    story.step(1, {{kNodeFs, kGiB / 2}});
    story.ended(Act::kReclaim, 500, error);
    story.step(1'000, {{kNodeFs, kGiB / 2}});
    EXPECT_EQ(story.decided(), kNothing) << "a sample that may be of before";
    story.step(1'501, {{kNodeFs, kGiB / 2}});
    EXPECT_EQ(story.decided(), Lines{"kill first"});
    story.remove_pod(0);
    story.step(1'600, {{kNodeFs, kGiB / 2}});
    story.step(3'000, {{kNodeFs, kGiB / 2}});
    EXPECT_EQ(story.decided(), Lines{"reclaim"}) << "the dead pod's containers, for one";
  }
}

TEST(NodeReclaim, IncludesMinimumReclaim) {
  Story story(reclaiming());
  story.policy.thresholds[0].min_reclaim = Quantity::of(kGiB, Quantity::Format::kBinarySI);
  story.uses_disk(story.pod("hog", 1_MiB), 1, 1_GiB);
  story.step(1, {{kNodeFs, kGiB / 2}});
  story.ended(Act::kReclaim, 500);
  story.step(2'000, {{kNodeFs, kGiB + kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(NodeReclaim, AReclaimWithoutResultTimesOut) {
  Story story(reclaiming());
  story.uses_disk(story.pod("hog", 1_MiB), 1, 1_GiB);
  story.step(1, {{kNodeFs, kGiB / 2}});
  story.uses_disk(0, 120'000, 1_GiB);
  story.step(121'002, {{kNodeFs, kGiB / 2}});
  story.step(121'100, {{kNodeFs, kGiB / 2}});
  EXPECT_EQ(story.decided(), Lines{"kill hog"});
}

TEST(NodeReclaim, FreesWhatIsOnTheFilesystem) {
  struct Case {
    Signal signal;
    ImageStorage images;
    Lines decided;
  };
  const ImageStorage apart{.dedicated = true};
  const ImageStorage split{.dedicated = true, .split = true};
  for (const Case& c :
       {Case{kNodeFs, apart, {"kill hog"}}, Case{Signal::kImageFsAvailable, apart, {"reclaim"}},
        Case{Signal::kImageFsAvailable, split, {"reclaim"}}, Case{kPids, {}, {"kill hog"}}}) {
    Policy policy = reclaiming();
    policy.thresholds = {below(c.signal, 1000)};
    Story story(policy);
    story.images = c.images;
    story.uses_disk(story.pod("hog", 1_MiB), 1, 1_GiB);
    story.record(0).pids_current = 2000;
    story.step(1, {{c.signal, 1}});
    EXPECT_EQ(story.decided(), c.decided) << name(c.signal) << c.images.split;
  }
}

// --- limits of local storage -----------------------------------------------------------------

TEST(Limits, AnEmptyDirOverItsSizeLimitEvictsItsPodOnly) {
  Story story(enforcing({}));
  for (const char* name : {"over", "under"}) {
    const auto pod = story.pod(name, 1_MiB);
    story.reading(pod).pod = with_empty_dir(story.reading(pod));
  }
  story.uses_disk(0, 1, 1_GiB + 1_B);
  story.uses_disk(1, 1, 1_GiB);
  story.step(1, {});
  ASSERT_EQ(story.decided(), Lines{"kill over"});
  EXPECT_EQ(cause_name(cause_of(story.verdict.decisions[0].reason)), "emptydirfs.limit");
}

TEST(Limits, SeveralPodsMayBeEvictedInOneTurn) {
  Story story(enforcing({memory_below(200_MiB)}));
  story.pod("hog", 2_GiB);
  for (const char* name : {"one", "two"}) {
    const auto pod = story.pod(name, 1_MiB);
    story.reading(pod).storage_limit = 1_GiB;
    story.uses_disk(pod, 1, 2_GiB);
  }
  story.step(1, {{Signal::kMemoryAvailable, 0}});
  EXPECT_EQ(story.decided(), (Lines{"kill one", "kill two"}));
  EXPECT_EQ(cause_name(cause_of(story.verdict.decisions[0].reason)), "ephemeralpodfs.limit");
}

TEST(Limits, OfAContainerCountLogsAndTheWritableLayer) {
  for (const bool apart : {false, true}) {
    Story story(enforcing({}));
    story.images.dedicated = apart;
    const auto pod = story.pod("db", 1_MiB);
    Pod described = *story.reading(pod).pod;
    Container container;
    container.name = "c";
    container.limits["ephemeral-storage"] = Quantity::of(1000);
    described.containers = {container};
    story.reading(pod).pod = std::make_shared<const Pod>(described);
    story.uses_disk(pod, 1, 0_B);
    story.disk(pod).containers = {
        {.name = "c", .rootfs = {Bytes{600}, 1}, .logs = {Bytes{600}, 1}}};
    story.step(1, {});
    EXPECT_EQ(story.decided(), apart ? kNothing : Lines{"kill db"});
  }
}

// A sidecar runs as long as the regular containers; an ordinary init container has ended.
TEST(Limits, OfASidecarCountAsThoseOfARegularContainer) {
  for (const bool sidecar : {false, true}) {
    Story story(enforcing({}));
    const auto pod = story.pod("db", 1_MiB);
    Pod described = *story.reading(pod).pod;
    described.containers = {{.name = "main", .requests = {}, .limits = {}}};
    described.init_containers = {{.name = "first", .requests = {}, .limits = {}},
                                 {.name = "log", .requests = {}, .limits = {}, .sidecar = sidecar}};
    described.init_containers[1].limits["ephemeral-storage"] = Quantity::of(1000);
    story.reading(pod).pod = std::make_shared<const Pod>(described);
    story.uses_disk(pod, 1, 0_B);
    story.disk(pod).containers = {
        {.name = "log", .rootfs = {Bytes{600}, 1}, .logs = {Bytes{600}, 1}}};
    story.step(1, {});
    EXPECT_EQ(story.decided(), sidecar ? Lines{"kill db"} : kNothing);
    if (!sidecar) continue;
    const Container* container = limited_container(described, story.verdict.decisions[0].reason);
    ASSERT_TRUE(container);
    EXPECT_EQ(container->name, "log");
  }
}

TEST(Limits, CriticalAndUnmeasuredPodsAndADisabledRuleEvictNoPod) {
  for (const int spared : {0, 1, 2}) {
    Story story(enforcing({}));
    const auto pod = story.pod("db", 1_MiB);
    story.reading(pod).storage_limit = 1_MiB;
    if (spared != 0) story.uses_disk(pod, 1, 1_GiB);
    if (spared == 1) story.reading(pod).critical = true;
    if (spared == 2) story.policy.local_storage_isolation = false;
    story.step(1, {});
    EXPECT_EQ(story.decided(), kNothing) << spared;
  }
}

// --- static pods -----------------------------------------------------------------------------

TEST(StaticPods, TheCulpritMayBeEvictedByOption) {
  struct Case {
    const char* says;
    bool option;
    std::int32_t priority;
    Bytes request;
    Lines decided;
  };
  for (const Case& c : {Case{"exempt_as_upstream", false, 0, 0_B, {"kill web"}},
                        Case{"culprit", true, 0, 0_B, {"kill static"}},
                        Case{"within_its_request", true, 0, 3_GiB, {"kill web"}},
                        Case{"system_critical", true, kSystemCriticalPriority, 0_B, {"kill web"}},
                        Case{"not_first", true, 10, 0_B, {"kill web"}}}) {
    Policy policy = enforcing({memory_below(200_MiB)});
    policy.evict_static_culprits = c.option;
    Story story(policy);
    const auto pod = story.pod("static", 2_GiB, c.request, c.priority);
    Pod is_static = *story.reading(pod).pod;
    is_static.is_static = true;
    story.reading(pod).pod = std::make_shared<const Pod>(is_static);
    story.reading(pod).critical = true;
    story.pod("web", 1_GiB);
    story.step(1, {{Signal::kMemoryAvailable, 0}});
    EXPECT_EQ(story.decided(), c.decided) << c.says;
  }
}

// --- pre-stop --------------------------------------------------------------------------------

struct PreStopStory : Story {
  PreStopStory() : Story(enforcing({memory_below(500_MiB, seconds(1)), memory_below(100_MiB)})) {
    policy.max_pod_grace = seconds(10);
    const auto db = pod("db", 2_GiB);
    Pod described = *reading(db).pod;
    Container container;
    container.pre_stop = {"/bin/flush"};
    described.containers = {container};
    reading(db).pod = std::make_shared<const Pod>(described);
    step(0, 400_MiB);
    step(1'000, 400_MiB);
  }
};

TEST(PreStop, SigtermFollowsWhenItEnds) {
  PreStopStory story;
  ASSERT_EQ(story.decided(), Lines{"pre-stop db"});
  story.ended(Act::kPreStop, 3'000);
  story.step(3'100, 400_MiB);
  ASSERT_EQ(story.decided(), Lines{"terminate db"});
  EXPECT_EQ(story.verdict.decisions[0].deadline, at_ms(11'000)) << "its grace began before";
  story.step(11'001, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill db"});
}

TEST(PreStop, IfTooLongLeavesTwoSecondsForSigterm) {
  PreStopStory story;
  story.step(8'999, 400_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  story.step(9'000, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"terminate db"});
  story.ended(Act::kPreStop, 11'500);  // reported late: changes nothing
  story.step(11'600, 400_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill db"});
}

TEST(PreStop, IsCutShortByAHardThreshold) {
  PreStopStory story;
  story.step(2'000, 50_MiB);
  EXPECT_EQ(story.decided(), Lines{"kill db"});
  story.ended(Act::kPreStop, 2'001);
  story.step(2'005, 50_MiB);
  EXPECT_EQ(story.decided(), kNothing);
  EXPECT_EQ(story.history.victims.at(0).phase, Victim::Phase::kKilled);
}

TEST(PreStop, AFailedPreStopDelaysNoPod) {
  PreStopStory story;
  Story fresh(story.policy);
  fresh.pod("db", 2_GiB);
  fresh.reading(0).pod = story.reading(0).pod;
  fresh.step(0, 400_MiB);
  fresh.step(1'000, 400_MiB, Outcome::Result::kFailed);
  ASSERT_EQ(fresh.decided(), Lines{"pre-stop db"});
  fresh.step(1'100, 400_MiB);
  EXPECT_EQ(fresh.decided(), Lines{"terminate db"});
}

}  // namespace
}  // namespace headroom
