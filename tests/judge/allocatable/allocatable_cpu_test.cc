// SPDX-License-Identifier: Apache-2.0
// CPU conversions over their whole range, and beyond it.
#include "judge/allocatable/cgroup/cgroup_values.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr WeightFormula kBoth[] = {WeightFormula::kLinear, WeightFormula::kQuadratic};

TEST(Shares, StayWithinTheKernelsRange) {
  EXPECT_EQ(shares_of({-5}), kMinShares);
  EXPECT_EQ(shares_of({0}), kMinShares);
  EXPECT_EQ(shares_of({1000}).count, 1024u);
  EXPECT_EQ(shares_of({256'000}), kMaxShares);
  EXPECT_EQ(shares_of({255'999}).count, 262'142u);
  EXPECT_EQ(shares_of({kMax}), kMaxShares);
}

TEST(Quota, OfEveryPeriod) {
  struct Case {
    const char* name;
    std::int64_t milli;
    std::int64_t period;
    std::int64_t quota;
  };
  for (const Case& c :
       {Case{"half_a_cpu", 500, 100'000, 50'000}, Case{"two_and_a_half", 2500, 100'000, 250'000},
        Case{"the_least_the_kernel_takes", 1, 100'000, 1000},
        Case{"a_short_period", 1500, 5'000, 7'500},
        Case{"a_short_period_and_the_least", 100, 1'000, 1'000},
        Case{"a_second", 333, 1'000'000, 333'000}})
    EXPECT_EQ(directory_quota({c.milli}, Microseconds(c.period)), Microseconds(c.quota)) << c.name;
}

TEST(Quota, NoCpuIsNoQuota) {
  EXPECT_FALSE(directory_quota({0}));
  EXPECT_FALSE(directory_quota({-1}));
}

TEST(Quota, Saturates) {
  EXPECT_EQ(directory_quota({kMax}), Microseconds(kMax / 1000));
}

TEST(Weight, RisesFromOneToTenThousandAndNeverFalls) {
  for (const WeightFormula formula : kBoth) {
    EXPECT_EQ(weight_of({0}, formula).value, 1u);
    EXPECT_EQ(weight_of(kMinShares, formula).value, 1u);
    EXPECT_EQ(weight_of(kMaxShares, formula).value, 10'000u);
    CpuWeight last{1};
    for (std::uint64_t shares = 2; shares <= kMaxShares.count; ++shares) {
      const CpuWeight weight = weight_of({shares}, formula);
      ASSERT_GE(weight, last) << shares;
      ASSERT_LE(weight.value, 10'000u) << shares;
      last = weight;
    }
  }
}

TEST(Weight, OneCpuIsThirtyNineOrSystemdsDefault) {
  EXPECT_EQ(weight_of(shares_of({1000}), WeightFormula::kLinear).value, 39u);
  EXPECT_EQ(weight_of(shares_of({1000}), WeightFormula::kQuadratic).value, 100u);
}

}  // namespace
}  // namespace headroom
