// SPDX-License-Identifier: Apache-2.0
// CgroupInventory: the directory of each cgroup id, held open.
//
// A sweep returns ids; acting needs a directory, and a path can come to mean another cgroup. So the
// descriptor is resolved once from the id (open_by_handle_at) and its path read back from it; known
// ids cost nothing on later updates, and a removed id is dropped with its descriptor.
#pragma once

#include "base/file_io.h"

#include <headroom/bpf/abi.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

struct KnownCgroup {
  CgroupId id;
  CgroupId parent;   // 0 for the root
  std::string path;  // from the cgroup root: "/kubepods.slice/…"; "/" for the root itself
  Fd directory;      // O_PATH | O_DIRECTORY
  // Creation time by the directory's timestamps, in nanoseconds of wall time; HR_UNKNOWN: not
  // available. The kernel dates a directory when it is first looked up, so an idle one may seem
  // younger.
  std::uint64_t started_ns = HR_UNKNOWN;
};

class CgroupInventory {
 public:
  // kParent, the fallback, finds a directory by listing its parent's: no privilege, more work.
  enum class By : std::uint8_t { kHandle, kParent };
  static Result<CgroupInventory> open(const std::filesystem::path& root, By by = By::kHandle);

  // Takes a sweep's records, parents before their children. True if the set of cgroups changed.
  bool update(std::span<const hr_record> records);

  // Null if not known. Good until the next update that returns true.
  const KnownCgroup* find(CgroupId id) const;
  // By path from the cgroup root.
  const KnownCgroup* find(std::string_view path) const;
  std::size_t size() const { return known_.size(); }
  template <class Visitor>
  void each(Visitor&& visit) const {
    for (const auto& [id, entry] : known_)
      visit(entry.cgroup);
  }

  // Ids of the last update with no directory: gone meanwhile, or no descriptor left.
  std::uint64_t unresolved() const { return unresolved_; }

 private:
  struct Entry {
    KnownCgroup cgroup;
    std::uint64_t seen = 0;  // the update that saw it last
  };
  CgroupInventory() = default;
  bool resolve(const hr_record& record, Entry& entry);
  bool resolve_directory(const hr_record& record, Entry& entry);
  bool resolve_by_handle(const hr_record& record, Entry& entry);
  bool resolve_by_parent(const hr_record& record, Entry& entry);
  void list_children(CgroupId parent);

  Fd root_;
  std::string root_path_;  // as /proc/self/fd says it
  std::uint64_t root_id_ = 0;
  bool handles_ = true;  // false: open_by_handle_at is not for us (no CAP_DAC_READ_SEARCH)
  std::unordered_map<std::uint64_t, Entry> known_;
  std::vector<std::uint64_t> last_ids_;
  std::uint64_t updates_ = 0;
  std::uint64_t unresolved_ = 0;
  // Of one update: children's names by id, and the parents already listed.
  std::unordered_map<std::uint64_t, std::string> child_names_;
  std::unordered_map<std::uint64_t, bool> listed_parents_;
};

}  // namespace headroom::observe
