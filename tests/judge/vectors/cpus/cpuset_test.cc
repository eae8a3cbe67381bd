// SPDX-License-Identifier: Apache-2.0
// CPU lists: what they hold and how they are written, or the kubelet's words against them.
#include "judge/vectors/lines.h"

#include <headroom/cpuset.h>

namespace headroom::vectors {
namespace {

class CpuSetVectors : public VectorTest {};

TEST_P(CpuSetVectors, Agree) {
  const auto cpus = CpuSet::parse(text("input"));
  if (line().contains("error")) {
    ASSERT_FALSE(cpus) << cpus->format();
    EXPECT_EQ(cpus.error().what, text("error"));
    return;
  }
  ASSERT_TRUE(cpus) << cpus.error().what;
  EXPECT_EQ(cpus->format(), text("format"));
  EXPECT_EQ(cpus->size(), line().at("size"));
}

INSTANTIATE_TEST_SUITE_P(Lines, CpuSetVectors, testing::ValuesIn(lines_of("cpuset.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
