// SPDX-License-Identifier: Apache-2.0
// CPU said in milliCPU, shares, quota and both weights.
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/vectors/lines.h"

#include <cstdint>

namespace headroom::vectors {
namespace {

class CpuConversionVectors : public VectorTest {};

TEST_P(CpuConversionVectors, Agree) {
  const MilliCpu cpu{line().at("milli_cpu").get<std::int64_t>()};
  const CpuShares shares = shares_of(cpu);
  EXPECT_EQ(shares.count, line().at("shares"));

  const auto quota = directory_quota(cpu);
  EXPECT_EQ(quota.has_value(), cpu.count != 0);  // upstream's "not set" is 0
  EXPECT_EQ(quota ? quota->count() : 0, line().at("quota_100ms"));

  const CpuWeight linear = weight_of(shares, WeightFormula::kLinear);
  EXPECT_EQ(linear.value, line().at("weight_linear"));
  EXPECT_EQ(weight_of(shares, WeightFormula::kQuadratic).value, line().at("weight_quadratic"));
}

INSTANTIATE_TEST_SUITE_P(Lines, CpuConversionVectors,
                         testing::ValuesIn(lines_of("cpu_conversion.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
