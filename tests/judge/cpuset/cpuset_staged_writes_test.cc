// SPDX-License-Identifier: Apache-2.0
// In which order cgroups get their CPUs: rows, and any change of hands on a machine that obeys.
#include "judge/cpuset/cpuset_write_order.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

std::string text_of(const std::vector<CpuWrite>& writes) {
  std::string text;
  for (const CpuWrite& write : writes)
    text.append(text.empty() ? "" : "; ").append(write.path + " " + write.cpus.format());
  return text;
}

TEST(StagedWritesTest, WithoutChangesNothingIsWritten) {
  const CpuTarget targets[] = {{"/p", cpus("2-3"), cpus("2-3")}};
  EXPECT_TRUE(next_writes(targets, cpus("0-1")).empty());
}

TEST(StagedWritesTest, CpusAreReleasedBeforeTheyAreAssigned) {
  std::vector<CpuTarget> targets{{"/p/tier", cpus("0-7"), cpus("0-1,4-7")},
                                 {"/p/a", cpus("2"), cpus("2-3")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1,4-7"))), "/p/tier 0-1,4-7");
  targets[0].has = targets[0].wanted;
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1,4-7"))), "/p/a 2-3");
}

TEST(StagedWritesTest, ContainersThatSwapCpusNeverOverlap) {
  std::vector<CpuTarget> targets{{"/p/a", cpus("2-3"), cpus("4-5")},
                                 {"/p/b", cpus("4-5"), cpus("2-3")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/a 0-1; /p/b 0-1");
  targets[0].has = targets[1].has = cpus("0-1");
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/a 4-5; /p/b 2-3");
}

TEST(StagedWritesTest, CpusThatAreStillHeldAreNotAssigned) {
  const CpuTarget targets[] = {{"/p/a", cpus("2-3"), cpus("0-1"), true},
                               {"/p/b", cpus("0-1"), cpus("3-5")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/b 4-5");
}

TEST(StagedWritesTest, AStuckContainerDoesNotBlockItsPod) {
  const CpuTarget targets[] = {{"/p/a", cpus("2-3"), cpus("2-5")},
                               {"/p/a/c", cpus("2-3"), cpus("3"), true}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/a 2-5");
}

TEST(StagedWritesTest, ParentsAreWrittenBeforeTheirChildren) {
  const CpuTarget targets[] = {{"/p/a/c", cpus("2"), cpus("2-3")},
                               {"/p/a", cpus("2"), cpus("2-5")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/a 2-5; /p/a/c 2-3");
}

// An init container that shares comes to a pod that has only CPUs of its own.
TEST(StagedWritesTest, AContainerThatCannotMoveToThePoolFollowsItsPod) {
  const CpuTarget targets[] = {{"/p/a", cpus("4-5"), cpus("0-1,4-7")},
                               {"/p/a/i", cpus("4-5"), cpus("0-1,6-7")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1,6-7"))), "/p/a 0-1,4-7; /p/a/i 0-1,6-7");
}

TEST(StagedWritesTest, AContainerMovesWithItsPod) {
  const CpuTarget targets[] = {{"/p/a", cpus("4-5"), cpus("2-3")},
                               {"/p/a/c", cpus("4-5"), cpus("2-3")}};
  EXPECT_EQ(text_of(next_writes(targets, cpus("0-1"))), "/p/a 0-1");
}

// Owners of CPUs 2-15 change at random, 0-1 are shared: at no instant is a container without a
// CPU, does a newcomer get what another still has, or take more than a few rounds.
TEST(StagedWritesTest, EveryTransitionIsSafe) {
  std::mt19937 random(7);
  constexpr int kOwners = 5;
  const auto deal = [&] {
    std::vector<CpuSet> hands(kOwners);
    for (Cpu cpu = 2; cpu < 16; ++cpu)
      hands[random() % kOwners].insert(cpu);
    for (CpuSet& hand : hands)
      if (hand.empty()) hand = cpus("0-1");  // without one of its own: shared
    return hands;
  };
  for (int round = 0; round < 500; ++round) {
    const auto before = deal(), after = deal();
    std::vector<CpuTarget> targets;
    for (std::size_t i = 0; i < kOwners; ++i)
      targets.push_back({"/p/" + std::to_string(i), before[i], after[i]});
    int stages = 0;
    for (auto writes = next_writes(targets, cpus("0-1")); !writes.empty();
         writes = next_writes(targets, cpus("0-1"))) {
      ASSERT_LT(++stages, 4);
      for (const CpuWrite& write : writes) {
        ASSERT_FALSE(write.cpus.empty());
        for (CpuTarget& target : targets) {
          if (target.path == write.path) {
            target.has = write.cpus;
            continue;
          }
          ASSERT_FALSE((target.has & write.cpus).intersects(cpus("2-15")));
        }
      }
    }
    for (const CpuTarget& target : targets)
      EXPECT_EQ(target.has, target.wanted);
  }
}

}  // namespace
}  // namespace headroom
