// SPDX-License-Identifier: Apache-2.0
// SliceReader: what a cgroup's settings are set to and what it uses, read from its files.
#pragma once

#include "judge/allocatable/cgroup/slice_plan.h"

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::observe {

class SliceReader {
 public:
  // `controllers`: those of the root. Every slice is to have these of them: cpu, cpuset, io, memory
  // and pids.
  SliceReader(std::filesystem::path root, const std::vector<std::string>& controllers);

  // Of the settings only those that are wanted. `path` is below the root: "/kubepods.slice".
  SliceReading read(const std::string& path, const CgroupValues& wanted) const;

  const std::filesystem::path& root() const { return root_; }
  const std::vector<std::string>& controllers() const { return needed_; }
  // hugetlb is none of them: systemd does not know it.
  bool has_huge_pages() const { return has_huge_pages_; }

 private:
  const std::filesystem::path root_;
  std::vector<std::string> needed_;
  bool has_huge_pages_ = false;
};

}  // namespace headroom::observe
