// SPDX-License-Identifier: Apache-2.0
// Parity: what counts as agreement between a source and the files.
#include "observe/self_check.h"

#include "observe/cgroup/cgroup_files.h"

#include <set>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

hr_record record_with(std::uint32_t valid) {
  hr_record record = unknown_record(7, 1);
  record.valid = valid;
  record.populated = 1;
  return record;
}

SelfCheck compare_one(const hr_record& before, const hr_record& sample, const hr_record& after) {
  SelfCheck parity;
  compare(before, sample, after, 2, parity);
  return parity;
}

TEST(SelfCheck, FieldsCoverTheRecordOnce) {
  std::set<std::size_t> offsets;
  for (const RecordField& field : kRecordFields)
    EXPECT_TRUE(offsets.insert(field.offset).second);
  EXPECT_EQ(*offsets.rbegin() + sizeof(hr_u64), sizeof(hr_record));
}

struct Case {
  const char* name;
  hr_u64 hr_record::*field;
  hr_group group;
  hr_u64 before, value, after;
  bool agrees;
};

TEST(SelfCheck, Values) {
  constexpr hr_u64 kMiB = 1 << 20;
  constexpr hr_u64 kMs = 1'000'000;
  const Case cases[] = {
      {"equal", &hr_record::memory_usage, HR_MEMORY_USAGE, 64 * kMiB, 64 * kMiB, 64 * kMiB, true},
      {"between", &hr_record::memory_usage, HR_MEMORY_USAGE, 10 * kMiB, 40 * kMiB, 64 * kMiB, true},
      {"shrinking", &hr_record::memory_usage, HR_MEMORY_USAGE, 64 * kMiB, 40 * kMiB, 10 * kMiB,
       true},
      {"within_the_stock", &hr_record::memory_usage, HR_MEMORY_USAGE, 4 * kMiB, 5 * kMiB, 4 * kMiB,
       true},
      {"another_field_altogether", &hr_record::inactive_file, HR_MEMORY_STAT, 64 * kMiB, 8 * kMiB,
       64 * kMiB, false},
      {"pages_for_bytes", &hr_record::anon, HR_MEMORY_STAT, 64 * kMiB, 16384, 64 * kMiB, false},
      {"a_limit_is_exact", &hr_record::memory_max, HR_MEMORY_LIMITS, 4096, 8192, 4096, false},
      {"no_limit", &hr_record::memory_max, HR_MEMORY_LIMITS, HR_NO_LIMIT, HR_NO_LIMIT, HR_NO_LIMIT,
       true},
      {"no_limit_against_some", &hr_record::memory_max, HR_MEMORY_LIMITS, HR_NO_LIMIT, 4096,
       HR_NO_LIMIT, false},
      {"an_event_more", &hr_record::events_oom_kill, HR_MEMORY_EVENTS, 0, 1, 0, false},
      {"an_event_in_time", &hr_record::events_oom_kill, HR_MEMORY_EVENTS, 0, 1, 1, true},
      {"fresh_cpu", &hr_record::cpu_usage_ns, HR_CPU, 1000 * kMs, 1010 * kMs, 1020 * kMs, true},
      {"stale_cpu", &hr_record::cpu_usage_ns, HR_CPU, 1000 * kMs, 900 * kMs, 1020 * kMs, false},
      {"unknown_is_never_wrong", &hr_record::anon, HR_MEMORY_STAT, 64 * kMiB, HR_UNKNOWN, 64 * kMiB,
       true},
      {"one_task_more", &hr_record::pids_current, HR_PIDS, 5, 6, 5, true},
      {"tasks_of_another", &hr_record::pids_current, HR_PIDS, 5, 50, 5, false},
  };
  for (const Case& c : cases) {
    hr_record before = record_with(c.group), sample = before, after = before;
    before.*c.field = c.before;
    sample.*c.field = c.value;
    after.*c.field = c.after;
    const SelfCheck parity = compare_one(before, sample, after);
    EXPECT_EQ(parity.disagreements.empty(), c.agrees) << c.name;
    EXPECT_EQ(parity.disagreeing_groups(), c.agrees ? 0u : static_cast<unsigned>(c.group))
        << c.name;
  }
}

TEST(SelfCheck, AGroupTheFilesHaveMustBeThere) {
  const SelfCheck parity = compare_one(record_with(HR_PIDS), record_with(0), record_with(HR_PIDS));
  ASSERT_EQ(parity.disagreements.size(), 1u);
  EXPECT_EQ(to_string(parity.disagreements[0]), "cgroup 7: pids is in the files only");
}

TEST(SelfCheck, TheRootMayLeaveGroupsToTheFiles) {
  hr_record files = record_with(HR_CPU), sample = record_with(0);
  files.parent_id = sample.parent_id = 0;
  EXPECT_TRUE(compare_one(files, sample, files).disagreements.empty());
}

TEST(SelfCheck, AGroupThatCameOrWentIsNotCompared) {
  const SelfCheck parity = compare_one(record_with(HR_PIDS), record_with(0), record_with(0));
  EXPECT_TRUE(parity.disagreements.empty());
}

TEST(SelfCheck, PopulatedMustMatchWhenItStoodStill) {
  hr_record files = record_with(0), sample = record_with(0);
  sample.populated = 0;
  EXPECT_EQ(compare_one(files, sample, files).disagreements.size(), 1u);
  hr_record emptied = files;
  emptied.populated = 0;
  EXPECT_TRUE(compare_one(files, sample, emptied).disagreements.empty());
}

TEST(SelfCheck, ADisagreementIsASentence) {
  const Disagreement d{.cgroup = 7,
                       .group = HR_MEMORY_LIMITS,
                       .field = "memory_max",
                       .before = HR_NO_LIMIT,
                       .value = 4096,
                       .after = HR_UNKNOWN};
  EXPECT_EQ(to_string(d),
            "cgroup 7: memory_max is 4096, the files have max before and unknown after");
}

}  // namespace
}  // namespace headroom::observe
