// SPDX-License-Identifier: Apache-2.0
// CgroupFiles: one cgroup's directory and the descriptors of its files, read into a record.
//
// Descriptors stay open because opening costs more than reading, and because a kept one is an
// identity: after the cgroup is gone they give ENODEV, never another cgroup of the same name.
#pragma once

#include "base/file_io.h"
#include "observe/cgroup/stat_text.h"

#include <headroom/cgroup_record.h>
#include <headroom/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::observe {

// Sums io.stat files. A driver registers its major number before its first device exists, so the
// list of them is read again when a device has a number that is not in it.
class IoStatReader {
 public:
  explicit IoStatReader(std::string proc_devices = "/proc/devices")
      : proc_devices_(std::move(proc_devices)) {}
  IoTotals totals(std::string_view io_stat);

 private:
  std::string proc_devices_;
  BlockMajors majors_;
};

// How many descriptors may be kept; past it a file is opened for each read.
struct DescriptorBudget {
  std::size_t files = 0;
};

class CgroupFiles {
 public:
  static constexpr std::size_t kFiles = 20;

  // The directory `name` below `parent` (AT_FDCWD for a path).
  static Result<CgroupFiles> open(int parent, const char* name);

  std::uint64_t id() const { return id_; }
  int directory() const { return directory_.get(); }

  // Fills the asked groups of the record, `populated` and nothing else; each group's valid bit
  // says whether its files were all there. False: the cgroup is gone.
  bool read(std::uint32_t groups, bool is_root, std::span<char> buffer, DescriptorBudget& budget,
            hr_record& record);

  // Files that were missing are looked for again: a controller may have been enabled since.
  void retry_missing() { missing_ = 0; }

  // Descriptors kept for files, to be given back to the budget with the cgroup.
  std::size_t kept() const;

 private:
  CgroupFiles(Fd directory, std::uint64_t id) : directory_(std::move(directory)), id_(id) {}
  // The file's text, empty if it cannot be read. Sets suspect_ when it was not there.
  std::string_view text(std::size_t file, std::span<char> buffer, DescriptorBudget& budget);

  Fd directory_;
  std::uint64_t id_;
  std::array<Fd, kFiles> files_;
  std::uint32_t missing_ = 0;  // a bit per file
  bool file_missing_ = false;  // a file was not there in this read: is the cgroup?
};

}  // namespace headroom::observe
