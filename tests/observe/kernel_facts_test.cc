// SPDX-License-Identifier: Apache-2.0
// What the running kernel's types tell.
#include "observe/bpf/kernel_facts.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

TEST(KernelFacts, OfThisKernel) {
  const KernelFacts facts = kernel_facts();
  const bool has_indices = facts.index[HR_STAT_ANON] != HR_NO_INDEX;
  EXPECT_EQ(has_indices, facts.state != StatIndices::kUnknown);
  // One of the two flushes exists wherever there is a cgroup iterator, never both.
  EXPECT_NE(facts.kfuncs & (HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH),
            static_cast<std::uint32_t>(HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH));
}

TEST(KernelFacts, WithoutTablesNoIndexIsFromOne) {
  const KernelFacts facts = kernel_facts(false);
  EXPECT_NE(facts.state, StatIndices::kTable);
  EXPECT_NE(facts.events, StatIndices::kTable);
  EXPECT_EQ(facts.index[HR_STAT_PGFAULT] != HR_NO_INDEX, facts.events != StatIndices::kUnknown);
}

}  // namespace
}  // namespace headroom::observe
