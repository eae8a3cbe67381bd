// SPDX-License-Identifier: Apache-2.0
// Probe: a service that does a little at a fixed pace, as requests come in, and says how late it
// was. It needs so much CPU time for each, and some of the pages it holds.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace probe {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kPeriod = 10 * kMillisecond, kWork = 4 * kMillisecond;
constexpr std::int64_t kLightWork = kMillisecond / 4;
constexpr std::int64_t kOnTime = 100 * kMillisecond;
constexpr int kPagesTouched = 64;

inline std::int64_t now(clockid_t clock) {
  timespec at{};
  ::clock_gettime(clock, &at);
  return at.tv_sec * 1'000'000'000LL + at.tv_nsec;
}

inline void sleep_until(std::int64_t at) {
  const timespec until{.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

struct Pages {
  const volatile char* at = nullptr;
  std::uint64_t count = 0;
};

inline void touch(const Pages& pages, std::minstd_rand& chance) {
  for (int i = 0; pages.count > 0 && i < kPagesTouched; ++i)
    static_cast<void>(pages.at[chance() % pages.count * 4096]);
}

// One line: milliseconds from when it was due to when it was done, pages that had to be read from a
// disk again, and the share of all that was due that was done within kOnTime.
inline void say(std::vector<std::int64_t> late, std::int64_t faults, std::int64_t due) {
  std::sort(late.begin(), late.end());
  const auto on_time = std::upper_bound(late.begin(), late.end(), kOnTime) - late.begin();
  const auto of = [&](std::size_t percent) {
    return static_cast<double>(late[(late.size() - 1) * percent / 100]) / kMillisecond;
  };
  std::printf("%.2f %.2f %.2f %lld %.4f\n", of(50), of(99), of(100), static_cast<long long>(faults),
              static_cast<double>(on_time) / static_cast<double>(due));
}

inline std::int64_t faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_majflt;
}

// It does not skip what is due: who has too little CPU falls behind, further and further.
inline void run(std::uint64_t seconds, std::int64_t work, const Pages& held, const Pages& mapped) {
  std::minstd_rand chance;
  for (std::uint64_t page = 0; page < mapped.count; ++page)
    static_cast<void>(mapped.at[page * 4096]);
  const std::int64_t before = faults(), began = now(CLOCK_MONOTONIC);
  const std::int64_t end = began + static_cast<std::int64_t>(seconds) * 1'000'000'000;
  std::vector<std::int64_t> late;
  for (std::int64_t due = began; due < end && now(CLOCK_MONOTONIC) < end; due += kPeriod) {
    sleep_until(due);
    touch(held, chance);
    touch(mapped, chance);
    const std::int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + work;
    while (now(CLOCK_THREAD_CPUTIME_ID) < until) {
    }
    late.push_back(now(CLOCK_MONOTONIC) - due);
  }
  say(std::move(late), faults() - before, (end - began) / kPeriod);
}

}  // namespace probe
