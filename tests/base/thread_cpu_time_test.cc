// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/process_stat.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>

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
  EXPECT_GE(cost_of("spinner").value_or(0ns) - *before, 20ms) << "a counter";
}

TEST(CpuTimeByThread, NoPartDecreasesWhileThreadsComeAndGo) {
  std::map<std::string, Duration> before;
  const auto read = [&before] {
    std::map<std::string, Duration> now;
    for (const ThreadCpuTime& each : cpu_time_by_thread())
      now[each.part] = each.cpu;
    for (const auto& [part, cpu] : before)
      ASSERT_TRUE(now.contains(part) && now[part] >= cpu) << part;
    before = std::move(now);
  };
  for (int round = 0; round < 50; ++round) {
    std::thread brief([] {
      set_thread_name("brief");
      for (const auto began = observe::thread_cpu_time();
           observe::thread_cpu_time() - began < 1ms;) {
      }
    });
    ASSERT_NO_FATAL_FAILURE(read());
    brief.join();
    ASSERT_NO_FATAL_FAILURE(read());
  }
}

// /proc/self/task can be listed, but no thread's file can be opened.
TEST(CpuTimeByThread, AThreadThatCannotBeReadIsNotCountedTwice) {
  const Duration before = cost_of("unread").value_or(0ns);
  const auto used = [&] { return cost_of("unread").value_or(before) - before; };
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    set_thread_name("unread");
    for (const auto began = observe::thread_cpu_time();
         observe::thread_cpu_time() - began < 50ms;) {
    }
    while (!stop)
      std::this_thread::sleep_for(1ms);
  });
  while (used() < 50ms)
    std::this_thread::sleep_for(1ms);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int lowest = ::dup(0);
  ASSERT_GE(lowest, 0);
  ::close(lowest);
  const rlimit one_more{.rlim_cur = static_cast<rlim_t>(lowest) + 1, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
  const auto without = cpu_time_by_thread();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(without.empty());
  EXPECT_LT(used(), 90ms) << "50 ms, and what it needs to sleep";
  stop = true;
  busy.join();
}

TEST(CpuTimeByThread, AlwaysHasTheLoopAndTheRest) {
  EXPECT_TRUE(cost_of("loop"));
  ASSERT_TRUE(cost_of("other"));
  EXPECT_GE(*cost_of("other"), 0ns);
}

}  // namespace
}  // namespace headroom::report
