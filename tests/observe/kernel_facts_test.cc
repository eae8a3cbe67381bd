// SPDX-License-Identifier: Apache-2.0
// Which index tables are believed. A wrong index is worse than none.
#include "observe/kernel_facts.h"

#include <array>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

struct Case {
  const char* name;
  std::array<hr_u32, HR_STAT_ITEMS> entries;  // five LRU lists, anon, file, shmem
  bool believed;
  std::array<hr_u32, 3> indices;
};

TEST(KernelFacts, IndexTables) {
  const Case cases[] = {
      {"counted_from_0", {0, 1, 2, 3, 4, 14, 16, 19}, true, {14, 16, 19}},
      {"counted_from_1_as_in_6_11", {1, 2, 3, 4, 5, 15, 17, 20}, true, {14, 16, 19}},
      {"lists_out_of_order", {0, 2, 1, 3, 4, 14, 16, 19}, false, {}},
      {"lists_not_first", {5, 6, 7, 8, 9, 14, 16, 19}, false, {}},
      {"all_zero", {0, 0, 0, 0, 0, 0, 0, 0}, false, {}},
      {"anon_is_not_kept", {0, 1, 2, 3, 4, 255, 16, 19}, false, {}},
      {"shmem_is_not_kept_in_6_11", {1, 2, 3, 4, 5, 15, 17, 0}, false, {}},
      {"file_is_a_list", {0, 1, 2, 3, 4, 14, 3, 19}, false, {}},
      {"unreadable", {0, 1, 2, 3, 4, HR_NO_INDEX, 16, 19}, false, {}},
  };
  for (const Case& c : cases) {
    hr_stat_index table{};
    for (std::size_t i = 0; i < HR_STAT_ITEMS; ++i)
      table.entries[i] = c.entries[i];
    KernelFacts facts;
    EXPECT_EQ(indices_from_table(table, facts), c.believed) << c.name;
    if (c.believed) {
      EXPECT_EQ(facts.anon_index, c.indices[0]) << c.name;
      EXPECT_EQ(facts.file_index, c.indices[1]) << c.name;
      EXPECT_EQ(facts.shmem_index, c.indices[2]) << c.name;
    } else {
      EXPECT_EQ(facts.anon_index, HR_NO_INDEX) << c.name;
    }
  }
}

TEST(KernelFacts, OfThisKernel) {
  const KernelFacts facts = kernel_facts();
  const bool has_indices = facts.anon_index != HR_NO_INDEX;
  EXPECT_EQ(has_indices,
            facts.indices == StatIndices::kBtf || facts.indices == StatIndices::kTable);
  // One of the two flushes exists wherever there is a cgroup iterator, never both.
  EXPECT_NE(facts.kfuncs & (HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH),
            static_cast<std::uint32_t>(HR_KFUNC_CGROUP_FLUSH | HR_KFUNC_CSS_FLUSH));
}

}  // namespace
}  // namespace headroom::observe
