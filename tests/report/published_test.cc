// SPDX-License-Identifier: Apache-2.0
// The hand-over between the loop and its readers, alone and under threads.
#include "report/view/published.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using Numbers = std::vector<int>;

bool show(Published<Numbers>& published, int value) {
  return published.publish([&](Numbers& next, const Numbers*) { next.assign(1000, value); });
}

TEST(Published, NothingBeforeTheFirst) {
  EXPECT_FALSE(Published<Numbers>().latest());
}

TEST(Published, AReadGuardOutlivesLaterPublications) {
  Published<Numbers> published;
  show(published, 1);
  const auto reading = published.latest();
  for (int value = 2; value < 20; ++value)
    EXPECT_TRUE(show(published, value));
  EXPECT_EQ(reading->front(), 1);
  EXPECT_EQ(published.latest()->front(), 19);
}

TEST(Published, TheWriterSeesTheLatestPublication) {
  Published<Numbers> published;
  published.publish([](Numbers&, const Numbers* previous) { EXPECT_EQ(previous, nullptr); });
  show(published, 7);
  published.publish([](Numbers& next, const Numbers* previous) {
    ASSERT_NE(previous, nullptr);
    EXPECT_NE(&next, previous);
    EXPECT_EQ(previous->front(), 7);
  });
}

TEST(Published, ABufferThatNoReaderNeedsAnyMoreGivesItsMemoryBack) {
  Published<std::shared_ptr<int>> published;
  const auto use = std::make_shared<int>();
  const auto show_it = [&] { published.publish([&](auto& next, const auto*) { next = use; }); };
  show_it();
  {
    const auto reading = published.latest();
    for (std::uint64_t i = 0; i < 2 * published.kIdle; ++i)
      show_it();
    EXPECT_EQ(**reading, 0) << "a reader keeps its buffer";
    EXPECT_EQ(use.use_count(), 1 + 3);
  }
  for (std::uint64_t i = 0; i <= published.kIdle; ++i)
    show_it();
  EXPECT_EQ(use.use_count(), 1 + 2);
}

TEST(Published, WhenReadersHoldEveryBufferThePublicationIsSkippedAndCounted) {
  Published<Numbers, 3> published;
  std::vector<Published<Numbers, 3>::ReadGuard> held;
  for (int value = 0; value < 3; ++value) {
    published.publish([&](Numbers& next, const Numbers*) { next.assign(1, value); });
    held.push_back(published.latest());
  }
  EXPECT_FALSE(published.publish([](Numbers& next, const Numbers*) { next.assign(1, 99); }));
  EXPECT_EQ(published.skipped(), 1u);
  EXPECT_EQ(published.latest()->front(), 2);
  held.erase(held.begin());
  EXPECT_TRUE(published.publish([](Numbers& next, const Numbers*) { next.assign(1, 99); }));
}

TEST(Published, NoReaderEverSeesHalfAPublication) {
  Published<Numbers> published;
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!stop) {
        const auto reading = published.latest();
        if (reading && std::adjacent_find(reading->begin(), reading->end(),
                                          std::not_equal_to<>()) != reading->end())
          ++torn;
      }
    });
  for (int value = 0; value < 20'000; ++value)
    show(published, value);
  stop = true;
  readers.clear();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace headroom::report
