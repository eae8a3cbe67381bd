// SPDX-License-Identifier: Apache-2.0
// CgroupfsSource: every cgroup from cgroupfs files, through descriptors kept open.
//
// Works on any cgroup v2 host, with no privilege beyond reading; costs a system call per file. The
// tree is walked again only when it changed: the root's cgroup.stat counts other descendants, or a
// known cgroup's files answered ENODEV.
#pragma once

#include "base/file_io.h"
#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_source.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

class CgroupfsSource final : public CgroupSource {
 public:
  struct Options {
    std::filesystem::path root = "/sys/fs/cgroup";  // the cgroup2 mount, or a tree below it
    std::uint32_t groups = kAllGroups;
    // Descriptors to keep; 0: three quarters of RLIMIT_NOFILE. Past it files are opened each time.
    std::size_t descriptors = 0;
    // The root of the whole hierarchy: it has no cgroup.events and is always populated.
    bool root_is_real = true;
  };

  static Result<std::unique_ptr<CgroupfsSource>> open(const Options& options);

  Result<std::span<const hr_record>> sweep() override;
  std::uint32_t groups() const override { return groups_; }
  std::string_view name() const override { return "files"; }
  std::uint64_t lost() const override { return lost_; }
  // Off at first.
  void set_compare_usage(bool compare_usage) override {
    not_read_ = compare_usage ? std::uint32_t{HR_IO} : 0;
  }

  // Reads these groups of the record's cgroup into it; false if that cgroup is not known or gone.
  // One that appeared since the last look at the tree is found by the next refresh().
  bool fill(std::uint32_t groups, hr_record& record);
  // Looks at the tree again if it changed, as sweep() does first.
  Result<> refresh();

 private:
  struct Entry {
    CgroupFiles files;
    std::uint64_t parent_id;
  };

  CgroupfsSource() = default;
  bool tree_changed();
  Result<> walk();
  void walk_below(std::size_t parent, std::vector<Entry>& known);
  bool read(Entry& entry, std::uint32_t groups, hr_record& record);

  std::filesystem::path root_;
  std::uint32_t groups_ = 0;
  std::uint32_t not_read_ = 0;  // of groups_, by sweep()
  bool root_is_real_ = true;
  DescriptorBudget budget_;
  std::size_t directories_left_ = 0;
  Fd tree_stat_;                              // the root's cgroup.stat
  std::optional<std::uint64_t> descendants_;  // as of the last walk
  bool stale_ = true;                         // a known cgroup was found gone
  std::uint64_t root_id_ = 0;
  std::vector<Entry> entries_;                            // parents before their children
  std::unordered_map<std::uint64_t, std::size_t> index_;  // id → position in entries_
  std::vector<hr_record> records_;
  std::vector<char> buffer_;
  std::uint64_t lost_ = 0;
  std::uint64_t refreshes_ = 0;  // refresh() calls
};

}  // namespace headroom::observe
