// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;

std::optional<Duration> cost_of(const std::string& part) {
  for (const ThreadCpuTime& each : cpu_time_by_thread())
    if (each.part == part) return each.cpu;
  return std::nullopt;
}

TEST(CpuTimeByThread, CountsAThreadUnderItsPart) {
  std::atomic<bool> stop{false}, named{false};
  std::thread busy([&] {
    set_thread_name("spinner");
    named = true;
    while (!stop) {
    }
  });
  while (!named)
    std::this_thread::yield();
  const auto before = cost_of("spinner");
  ASSERT_TRUE(before);
  for (int i = 0; i < 500 && *cost_of("spinner") - *before < 20ms; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_GE(*cost_of("spinner") - *before, 20ms);
  stop = true;
  busy.join();
  EXPECT_FALSE(cost_of("spinner")) << "its time is among others' now";
}

TEST(CpuTimeByThread, AlwaysHasTheLoopAndTheRest) {
  EXPECT_TRUE(cost_of("loop"));
  ASSERT_TRUE(cost_of("other"));
  EXPECT_GE(*cost_of("other"), 0ns);
}

}  // namespace
}  // namespace headroom::report
