// SPDX-License-Identifier: Apache-2.0
#include "observe/self_check.h"

#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_inventory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace headroom::observe {
namespace {

using Kind = RecordField::Kind;

constexpr std::uint64_t kMillisecond = 1'000'000;

// How far a right value may lie outside what the files said just before and just after.
std::uint64_t tolerance(Kind kind, std::uint64_t high, unsigned cpus) {
  switch (kind) {
    case Kind::kBytes:
      // A CPU holds back up to 64 pages of charges and of vmstat updates (MEMCG_CHARGE_BATCH).
      return 2ull * 64 * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) * cpus + high / 64;
    case Kind::kLimit:
    case Kind::kWeight:
      return 0;
    case Kind::kCount:
      return 0;
    case Kind::kTasks:
      return 2;
    case Kind::kCpuTime:
      // cpu.stat rounds to microseconds; user and system are shares of ticks, up to 10 ms each.
      return 20 * kMillisecond;
    case Kind::kStallTime:
      return kMillisecond;
  }
  return 0;
}

bool lies_between(std::uint64_t before, std::uint64_t value, std::uint64_t after,
                  std::uint64_t slack) {
  const std::uint64_t low = std::min(before, after);
  const std::uint64_t high = std::max(before, after);
  return value >= (low > slack ? low - slack : 0) &&
         value <= (high > ~0ull - slack ? ~0ull : high + slack);
}

// Which records to look at closely: half by memory, half evenly spread, the root among them.
std::vector<hr_record> sample_cgroups(std::span<const hr_record> all, std::size_t wanted) {
  if (all.size() <= wanted) return {all.begin(), all.end()};
  std::vector<hr_record> by_memory(all.begin(), all.end());
  const auto usage = [](const hr_record& record) {
    return record.valid & HR_MEMORY_USAGE ? record.memory_usage : 0;
  };
  std::stable_sort(by_memory.begin(), by_memory.end(),
                   [&](const hr_record& a, const hr_record& b) { return usage(a) > usage(b); });
  std::vector<hr_record> picked(by_memory.begin(),
                                by_memory.begin() + static_cast<std::ptrdiff_t>(wanted / 2));
  const std::size_t spread = wanted - picked.size();
  for (std::size_t i = 0; i < spread; ++i)
    picked.push_back(all[i * all.size() / spread]);
  return picked;
}

}  // namespace

std::string to_string(const Disagreement& d) {
  std::string text = "cgroup " + std::to_string(d.cgroup) + ": ";
  if (d.field == "valid") return text + group_list(d.group) + " is in the files only";
  const auto number = [](std::uint64_t value) {
    if (value == HR_UNKNOWN) return std::string("unknown");
    if (value == HR_NO_LIMIT) return std::string("max");
    return std::to_string(value);
  };
  return text.append(d.field) + " is " + number(d.value) + ", the files have " + number(d.before) +
         " before and " + number(d.after) + " after";
}

std::uint32_t SelfCheck::disagreeing_groups() const {
  std::uint32_t groups = 0;
  for (const Disagreement& disagreement : disagreements)
    groups |= disagreement.group;
  return groups;
}

void compare(const hr_record& before, const hr_record& sample, const hr_record& after,
             unsigned cpus, SelfCheck& self_check_result, std::uint32_t partial) {
  if (before.populated == after.populated && sample.populated != before.populated)
    self_check_result.disagreements.push_back(
        {sample.id, 0, "populated", before.populated, sample.populated, after.populated});
  const std::uint32_t in_files = before.valid & after.valid;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    const std::uint32_t group = 1u << i;
    if (!(in_files & group)) continue;
    if (sample.valid & group) {
      ++self_check_result.compared[i];
    } else if (partial & group) {  // unknown in this record, and not wrong
      continue;
    } else if (sample.parent_id != 0) {  // the root is the files' business (see sweep.bpf.c)
      self_check_result.disagreements.push_back({sample.id, group, "valid", 1, 0, 1});
    }
  }
  for (const RecordField& field : kRecordFields) {
    if (!(in_files & sample.valid & field.group)) continue;
    const hr_u64 low = value_of(before, field);
    const hr_u64 value = value_of(sample, field);
    const hr_u64 high = value_of(after, field);
    // Unknown is never wrong; the group's valid bit was compared above.
    if (value == HR_UNKNOWN || low == HR_UNKNOWN || high == HR_UNKNOWN) continue;
    if (!lies_between(low, value, high, tolerance(field.kind, std::max(low, high), cpus)))
      self_check_result.disagreements.push_back(
          {sample.id, field.group, field.name, low, value, high});
  }
}

Result<SelfCheck> run_self_check(CgroupSource& source, const SelfCheckOptions& options) {
  auto first = source.sweep();
  if (!first) return tl::make_unexpected(first.error());
  const std::vector<hr_record> picked = sample_cgroups(*first, options.cgroups);

  auto inventory = CgroupInventory::open(options.root);
  if (!inventory) return tl::make_unexpected(inventory.error());
  inventory->update(picked);

  struct Pair {
    CgroupFiles files;
    hr_record before;
  };
  std::vector<Pair> pairs;
  std::vector<char> buffer(16 * 1024);
  DescriptorBudget budget{.files = 1024};
  const std::uint32_t groups = source.groups();
  for (const hr_record& record : picked) {
    const KnownCgroup* known = inventory->find(CgroupId{record.id});
    if (!known) continue;  // gone since
    auto files = CgroupFiles::open(known->directory.get(), ".");
    if (!files) continue;
    pairs.push_back({std::move(*files), unknown_record(record.id, record.parent_id)});
  }
  for (Pair& pair : pairs)
    pair.files.read(groups, pair.before.parent_id == 0, buffer, budget, pair.before);

  auto second = source.sweep();
  if (!second) return tl::make_unexpected(second.error());

  SelfCheck self_check_result;
  const auto cpus = static_cast<unsigned>(std::max(1l, sysconf(_SC_NPROCESSORS_CONF)));
  for (Pair& pair : pairs) {
    hr_record after = unknown_record(pair.before.id, pair.before.parent_id);
    if (!pair.files.read(groups, after.parent_id == 0, buffer, budget, after)) continue;
    const auto same = std::find_if(second->begin(), second->end(),
                                   [&](const hr_record& record) { return record.id == after.id; });
    if (same != second->end())
      compare(pair.before, *same, after, cpus, self_check_result, source.partial_groups());
  }
  return self_check_result;
}

}  // namespace headroom::observe
