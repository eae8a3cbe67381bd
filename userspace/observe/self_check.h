// SPDX-License-Identifier: Apache-2.0
// Self-check: whether a source agrees with the cgroupfs files, field by field.
//
// The files are read before and after the source, whose value must lie between the two, within what
// the kernel's own batching allows. So a live machine agrees with itself, and a wrong offset or a
// stale counter does not.
#pragma once

#include "observe/cgroup/cgroup_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

struct Disagreement {
  std::uint64_t cgroup = 0;
  std::uint32_t group = 0;  // 0: populated
  std::string_view field;   // "valid" where the source lacks a group that the files have
  std::uint64_t before = 0, value = 0, after = 0;
};
std::string to_string(const Disagreement& disagreement);

struct SelfCheck {
  std::array<std::uint32_t, HR_GROUPS> compared{};  // cgroups where both sides had the group
  std::vector<Disagreement> disagreements;

  std::uint32_t disagreeing_groups() const;
};

// Adds one cgroup's comparison. `cpus` widens the tolerance where the kernel batches per CPU; a
// group in `partial` may be missing in the sample.
void compare(const hr_record& before, const hr_record& sample, const hr_record& after,
             unsigned cpus, SelfCheck& parity, std::uint32_t partial = 0);

struct SelfCheckOptions {
  std::filesystem::path root = "/sys/fs/cgroup";
  // The cgroups that use most memory, which betray a wrong index best, and others evenly spread.
  std::size_t cgroups = 16;
};
Result<SelfCheck> run_self_check(CgroupSource& source, const SelfCheckOptions& options);

}  // namespace headroom::observe
