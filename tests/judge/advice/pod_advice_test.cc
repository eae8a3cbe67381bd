// SPDX-License-Identifier: Apache-2.0
// What a pod's recorded use asks for: tables of use and of advice.
#include "judge/advice/pod_advice.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMiB = 1 << 20;

// A hundred seconds: `low` for 90 of them, `middle` for 7, `high` for 3.
PodUse use_of(std::int64_t low_mib, std::int64_t middle_mib, std::int64_t high_mib, double low_cpus,
              double middle_cpus, double high_cpus) {
  PodUse use;
  for (int second = 0; second < 100; ++second)
    use.samples.push_back({.length = 1s,
                           .working_set = kMiB * (second < 90   ? low_mib
                                                  : second < 97 ? middle_mib
                                                                : high_mib),
                           .cpus = second < 90   ? low_cpus
                                   : second < 97 ? middle_cpus
                                                 : high_cpus});
  return use;
}

TEST(PodAdvice, MemoryFollowsThePercentilesAndThePeak) {
  struct Case {
    const char* what;
    PodUse use;
    std::optional<std::int64_t> request, limit;  // MiB
    std::optional<std::int64_t> advised_request, advised_limit;
  };
  for (Case c : {
           Case{"nothing is set", use_of(100, 200, 400, 0, 0, 0), {}, {}, 220, 480},
           Case{"all is right", use_of(100, 200, 400, 0, 0, 0), 220, 480, {}, {}},
           Case{"close enough", use_of(100, 200, 400, 0, 0, 0), 205, 500, {}, {}},
           Case{"far too much", use_of(100, 200, 400, 0, 0, 0), 4096, 8192, 220, 480},
           Case{"far too little", use_of(100, 200, 400, 0, 0, 0), 50, 8192, 220, 480},
       }) {
    if (c.request) c.use.memory_request = *c.request * kMiB;
    if (c.limit) c.use.memory_limit = *c.limit * kMiB;
    const PodAdvice advice = advise(c.use);
    const auto mib = [](std::optional<std::int64_t> bytes) {
      return bytes ? std::optional(*bytes / kMiB) : std::nullopt;
    };
    EXPECT_TRUE(advice.enough) << c.what;
    EXPECT_EQ(mib(advice.memory_request), c.advised_request) << c.what;
    EXPECT_EQ(mib(advice.memory_limit), c.advised_limit) << c.what;
  }
}

TEST(PodAdvice, AtItsLimitAPodsUseIsUnknownSoTheLimitGrows) {
  PodUse use = use_of(400, 400, 400, 0, 0, 0);
  use.memory_request = use.memory_limit = 400 * kMiB;
  use.limit_hits = 7;
  EXPECT_EQ(advise(use).memory_limit, 600 * kMiB);
  use.limit_hits = 0;
  use.oom_kills = 1;
  for (PodUseSample& sample : use.samples)
    sample.working_set = 100 * kMiB;
  EXPECT_EQ(advise(use).memory_limit, 480 * kMiB) << "it was killed before it was read";
}

TEST(PodAdvice, TheCpuRequestIsWhatItUsesForNineTenthsOfTheTime) {
  PodUse use = use_of(1, 1, 1, 0.25, 1, 2);
  EXPECT_EQ(advise(use).cpu_request, 0.25);
  use.cpu_request = 0.26;
  EXPECT_EQ(advise(use).cpu_request, std::nullopt);
  use.cpu_request = 2;
  EXPECT_EQ(advise(use).cpu_request, 0.25);
  EXPECT_EQ(advise(use).cpu_quota, std::nullopt) << "no quota is no mistake";
}

TEST(PodAdvice, AQuotaIsRaisedOnlyWhereItThrottles) {
  PodUse use = use_of(1, 1, 1, 0.5, 0.5, 0.5);
  use.cpu_quota = 0.5;
  use.periods = 1000;
  use.throttled_periods = 10;
  EXPECT_EQ(advise(use).cpu_quota, std::nullopt) << "one in a hundred";
  use.throttled_periods = 500;
  use.at_quota = 50s;
  EXPECT_EQ(advise(use).cpu_quota, 1.1) << "half the time at the quota: twice its use";
  use.at_quota = 99s;
  EXPECT_EQ(advise(use).cpu_quota, 2.2) << "no more than four times its use";
  use.at_quota = 0s;
  EXPECT_EQ(advise(use).cpu_quota, 0.55) << "never lower";
}

TEST(PodAdvice, TheRequestStaysBelowTheQuota) {
  PodUse use = use_of(1, 1, 1, 1.5, 1.5, 1.5);
  use.cpu_quota = 0.5;
  use.periods = 100;
  use.throttled_periods = 90;
  const PodAdvice advice = advise(use);
  EXPECT_LE(*advice.cpu_request, *advice.cpu_quota);
}

TEST(PodAdvice, TheEvidenceIsGivenEvenIfItIsNotEnough) {
  PodUse use = use_of(100, 200, 400, 0.5, 1, 2);
  use.memory_request = 150 * kMiB;
  use.cpu_quota = 2;
  use.periods = 200;
  use.throttled_periods = 30;
  PodAdvice advice = advise(use);
  EXPECT_EQ(advice.observed, 100s);
  EXPECT_EQ(advice.memory->median, 100.0 * kMiB);
  EXPECT_EQ(advice.memory->most, 400.0 * kMiB);
  EXPECT_EQ(advice.cpu->p99, 2);
  EXPECT_NEAR(*advice.over_request, 0.1, 1e-9);
  EXPECT_NEAR(*advice.throttled, 0.15, 1e-9);
  use.samples.resize(30);
  advice = advise(use);
  EXPECT_FALSE(advice.enough);
  EXPECT_TRUE(advice.memory);
  EXPECT_FALSE(advice.memory_request || advice.memory_limit || advice.cpu_request ||
               advice.cpu_quota);
}

TEST(PodAdvice, UnknownUseAdvisesNothing) {
  PodUse use;
  for (int second = 0; second < 100; ++second)
    use.samples.push_back({.length = 1s, .working_set = {}, .cpus = {}});
  const PodAdvice advice = advise(use);
  EXPECT_TRUE(advice.enough);
  EXPECT_FALSE(advice.memory || advice.cpu || advice.memory_request || advice.cpu_request);
}

TEST(PodAdvice, ASampleCountsForItsLength) {
  const auto summary = summarise({{1, 99s}, {10, 1s}, {5, 0s}});
  EXPECT_EQ(summary->p95, 1);
  EXPECT_EQ(summary->most, 10);
  EXPECT_FALSE(summarise({}));
}

}  // namespace
}  // namespace headroom
