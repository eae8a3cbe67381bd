// SPDX-License-Identifier: Apache-2.0
// Ranking: which pod comes before which and why, and that it is a strict order.
#include "judge/eviction/rank/rank.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr Signal kMemory = Signal::kMemoryAvailable;

Candidate using_memory(std::optional<Bytes> working_set, Bytes request, std::int32_t priority = 0,
                       std::uint32_t pod = 0) {
  return {.pod = pod,
          .usage = working_set ? std::optional(working_set->count) : std::nullopt,
          .request = request.count,
          .credit = request.count,
          .priority = priority};
}

TEST(MemoryRank, FirstIsEvictedBeforeSecond) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  struct Case {
    const char* says;
    Candidate first;
    Candidate second;
  };
  for (const Case& c :
       {Case{"without_stats_before_the_worst_hog", using_memory({}, 0_B, 1000),
             using_memory(900_GiB, 0_B, -1000)},
        Case{"over_its_request_whatever_its_priority", using_memory(2_GiB, 1_GiB, 1000),
             using_memory(9_GiB, 9_GiB, -1000)},
        Case{"lower_priority_however_little_over", using_memory(2_GiB, 1_GiB, -1),
             using_memory(9_GiB, 1_GiB, 0)},
        Case{"further_over_its_request", using_memory(4_GiB, 1_GiB), using_memory(9_GiB, 7_GiB)},
        Case{"nearer_to_its_request", using_memory(1_GiB, 2_GiB), using_memory(7_GiB, 9_GiB)},
        Case{"both_without_stats_by_priority", using_memory({}, 5_GiB, -1, 9),
             using_memory({}, 0_B, 0, 1)},
        Case{"none_used_is_known", using_memory({}, 0_B, 0, 9), using_memory(0_B, 0_B, 0, 1)},
        Case{"equals_by_index", using_memory(2_GiB, 1_GiB, 0, 1), using_memory(2_GiB, 1_GiB, 0, 2)},
        Case{"equals_without_stats_by_index", using_memory({}, 1_GiB, 0, 1),
             using_memory({}, 9_GiB, 0, 2)},
        Case{"an_absurd_request_does_not_wrap", using_memory(1_GiB, Bytes{-kMax}),
             using_memory(9_GiB, 0_B)}}) {
    EXPECT_TRUE(evicts_before(kMemory, c.first, c.second)) << c.says;
    EXPECT_FALSE(evicts_before(kMemory, c.second, c.first)) << c.says;
    EXPECT_FALSE(evicts_before(kMemory, c.first, c.first)) << c.says;
  }
}

// A crowd drawn from few values, so that every key ties often.
struct Crowd {
  std::vector<Pod> pods;
  std::vector<std::optional<PodUsage>> usages;

  explicit Crowd(std::mt19937& random, std::size_t size) {
    const auto below = [&](int n) { return std::uniform_int_distribution(0, n - 1)(random); };
    for (std::size_t i = 0; i < size; ++i) {
      Pod pod;
      pod.priority = below(3) - 1;
      Container container;
      container.requests["memory"] = Quantity::of(below(3) * 100);
      container.requests["ephemeral-storage"] = Quantity::of(below(3) * 100);
      pod.containers = {container};
      pods.push_back(pod);

      PodUsage usage;
      if (below(4) > 0) usage.working_set = Bytes{below(4) * 100};
      if (below(4) > 0) usage.processes = below(4);
      usage.containers = {{.name = "c",
                           .rootfs = {Bytes{below(3) * 100}, below(3)},
                           .logs = {Bytes{below(3) * 100}, std::nullopt}}};
      usage.local_volumes = {{std::nullopt, below(3)}};
      usages.push_back(below(5) > 0 ? std::optional(usage) : std::nullopt);
    }
  }

  std::vector<std::uint32_t> ranked(Signal signal, ImageStorage images = {}) const {
    std::vector<RankInput> inputs;
    for (std::size_t i = 0; i < pods.size(); ++i)
      inputs.push_back({&pods[i], usages[i] ? &*usages[i] : nullptr});
    return rank(signal, images, inputs);
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      std::optional<Bytes> held;
      if (usages[i]) held = usages[i]->working_set ? *usages[i]->working_set : Bytes{0};
      all.push_back(using_memory(held, Bytes{eviction_request(pods[i], "memory").value()},
                                 pods[i].priority, static_cast<std::uint32_t>(i)));
    }
    return all;
  }
};

std::vector<std::uint32_t> pods_of(const std::vector<Candidate>& ranking) {
  std::vector<std::uint32_t> pods;
  for (const auto& each : ranking)
    pods.push_back(each.pod);
  return pods;
}

TEST(MemoryRank, IsAStrictWeakOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const auto all = Crowd(random, 12).candidates();
    for (const auto& a : all)
      for (const auto& b : all) {
        const auto before = [](const Candidate& x, const Candidate& y) {
          return evicts_before(kMemory, x, y);
        };
        EXPECT_EQ(before(a, b) || before(b, a), a.pod != b.pod) << "total";
        EXPECT_FALSE(before(a, b) && before(b, a)) << "antisymmetric";
        for (const auto& c : all)
          if (before(a, b) && before(b, c)) {
            EXPECT_TRUE(before(a, c)) << "transitive";
          }
      }
  }
}

TEST(MemoryRank, BothFunctionsAgreeAndInputOrderDoesNotMatter) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Crowd crowd(random, 30);
    auto ranking = crowd.candidates();
    std::shuffle(ranking.begin(), ranking.end(), random);
    rank(kMemory, ranking);
    EXPECT_EQ(pods_of(ranking), crowd.ranked(Signal::kMemoryAvailable));
    EXPECT_EQ(pods_of(ranking), crowd.ranked(Signal::kAllocatableMemoryAvailable));
  }
}

TEST(Rank, IsAPermutationWhateverTheSignal) {
  std::mt19937 random(3);
  for (std::size_t signal = 0; signal < kSignals; ++signal)
    for (const ImageStorage images : {ImageStorage{}, ImageStorage{.dedicated = true},
                                      ImageStorage{.dedicated = true, .split = true}}) {
      auto order = Crowd(random, 40).ranked(static_cast<Signal>(signal), images);
      std::vector<std::uint32_t> all_pods(40);
      std::iota(all_pods.begin(), all_pods.end(), 0U);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, all_pods) << kSignalNames[signal];
    }
  EXPECT_TRUE(rank(Signal::kPidAvailable, {}, {}).empty());
}

// Pod 0 has a full writable layer, pod 1 full logs, pod 2 a full volume.
TEST(Rank, CountsUsageOnTheFilesystemOfTheSignal) {
  const std::vector<Pod> pods(3);
  std::vector<PodUsage> usages(3);
  usages[0].containers = {{.name = "c", .rootfs = {3_GiB, 30}, .logs = {}}};
  usages[1].containers = {{.name = "c", .rootfs = {}, .logs = {2_GiB, 20}}};
  usages[2].local_volumes = {{1_GiB, 10}};
  const std::vector<RankInput> inputs{
      {&pods[2], &usages[2]}, {&pods[1], &usages[1]}, {&pods[0], &usages[0]}};
  using Order = std::vector<std::uint32_t>;
  const Order all_parts{2, 1, 0};
  const Order not_the_layer{1, 0, 2};
  const Order the_layer{2, 0, 1};
  const Order nothing{0, 1, 2};  // all equal: by index
  struct Case {
    const char* says;
    ImageStorage images;
    Order nodefs, imagefs, containerfs;
  };
  for (const Case& c :
       {Case{"one_filesystem", {}, all_parts, all_parts, all_parts},
        Case{"images_apart", {.dedicated = true}, not_the_layer, the_layer, the_layer},
        Case{"layers_apart_too", {.dedicated = true, .split = true}, all_parts, nothing, all_parts},
        Case{"three_filesystems",
             {.dedicated = true, .split = true, .apart = true},
             not_the_layer,
             nothing,
             the_layer}}) {
    EXPECT_EQ(rank(Signal::kNodeFsAvailable, c.images, inputs), c.nodefs) << c.says;
    EXPECT_EQ(rank(Signal::kNodeFsInodesFree, c.images, inputs), c.nodefs) << c.says;
    EXPECT_EQ(rank(Signal::kImageFsAvailable, c.images, inputs), c.imagefs) << c.says;
    EXPECT_EQ(rank(Signal::kImageFsInodesFree, c.images, inputs), c.imagefs) << c.says;
    EXPECT_EQ(rank(Signal::kContainerFsAvailable, c.images, inputs), c.containerfs) << c.says;
    EXPECT_EQ(rank(Signal::kContainerFsInodesFree, c.images, inputs), c.containerfs) << c.says;
  }
}

// The live path reads records and measurements; the vectors' path gets values. They must agree.
TEST(Rank, UsesTheUnitOfTheSignal) {
  auto pod = std::make_shared<Pod>();
  hr_record record;
  std::memset(&record, 0xff, sizeof record);
  record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_PIDS;
  record.memory_usage = 300;
  record.inactive_file = 100;
  record.swap_usage = 50;
  record.pids_current = 7;
  DiskUsage disk;
  disk.containers = {{.name = "c", .rootfs = {Bytes{1000}, 10}, .logs = {Bytes{200}, 2}}};
  disk.volumes = {{.name = "v", .usage = {Bytes{40}, 4}, .ranked = true},
                  {.name = "m", .usage = {Bytes{9999}, 999}, .ranked = false}};
  PodReading reading{.pod = pod, .cgroup = {}, .record = &record, .memory_request = {}};
  reading.disk = &disk;
  struct Case {
    Signal signal;
    ImageStorage images;
    std::int64_t usage;
  };
  for (const Case& c :
       {Case{Signal::kMemoryAvailable, {}, 200}, Case{Signal::kSwapAvailable, {}, 250},
        Case{Signal::kMemoryPressure, {}, 200}, Case{Signal::kPidAvailable, {}, 7},
        Case{Signal::kNodeFsAvailable, {}, 1240},
        Case{Signal::kNodeFsAvailable, {.dedicated = true}, 240},
        Case{Signal::kImageFsAvailable, {.dedicated = true}, 1000},
        Case{Signal::kNodeFsInodesFree, {}, 16}})
    EXPECT_EQ(candidate_for(c.signal, c.images, reading).usage, c.usage) << name(c.signal);
  record.swapcached = 20;
  EXPECT_EQ(candidate_for(Signal::kSwapAvailable, {}, reading).usage, 230) << "each page once";
  record.valid = 0;
  reading.disk = nullptr;
  for (std::size_t signal = 0; signal < kSignals; ++signal)
    EXPECT_FALSE(candidate_for(static_cast<Signal>(signal), {}, reading).usage)
        << kSignalNames[signal] << ": unknown is not zero";
}

// Beside a kubelet: what is not known of a pod does not make it the first to go.
TEST(Rank, APodWithoutManifestYetComesLast) {
  const auto candidate = [](std::uint32_t pod, PodDescription description, std::int32_t priority,
                            std::optional<std::int64_t> usage) {
    Candidate each{.pod = pod, .usage = usage, .request = 0, .credit = 0, .priority = priority};
    each.description = description;
    return each;
  };
  for (const Signal signal :
       {Signal::kMemoryAvailable, Signal::kPidAvailable, Signal::kNodeFsAvailable}) {
    std::vector<Candidate> all{candidate(0, PodDescription::kAwaitedProtected, 0, std::nullopt),
                               candidate(1, PodDescription::kAwaited, 0, 900),
                               candidate(2, PodDescription::kComplete, 1000, 100),
                               candidate(3, PodDescription::kAwaited, 0, std::nullopt)};
    rank(signal, all);
    EXPECT_EQ(all[0].pod, 2u) << name(signal);
    EXPECT_EQ(all[1].pod, 3u) << name(signal);
    EXPECT_EQ(all[2].pod, 1u) << name(signal);
    EXPECT_EQ(all[3].pod, 0u) << name(signal);
  }
}

TEST(Rank, OfTasksComparesPriorityFirst) {
  std::vector<Pod> pods(3);
  pods[0].priority = 1;
  PodUsage many;
  many.processes = 5000;
  PodUsage few;
  few.processes = 1;
  const std::vector<RankInput> inputs{{&pods[0], nullptr}, {&pods[1], &few}, {&pods[2], &many}};
  EXPECT_EQ(rank(Signal::kPidAvailable, {}, inputs), (std::vector<std::uint32_t>{2, 1, 0}));
}

}  // namespace
}  // namespace headroom
