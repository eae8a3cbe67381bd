// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_inventory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

namespace headroom::observe {
namespace {

constexpr int kKernfsHandle = 0xfe;  // FILEID_KERNFS, since 5.5: the 64-bit id is the handle

struct CloseDir {
  void operator()(DIR* directory) const { closedir(directory); }
};

// What the descriptor's directory is called now; nullopt if it has no name any more.
std::optional<std::string> path_of(int fd) {
  std::array<char, 32> link;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  std::array<char, PATH_MAX> path;
  const ssize_t length = readlink(link.data(), path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) >= path.size()) return std::nullopt;
  return std::string(path.data(), static_cast<std::size_t>(length));
}

std::optional<std::uint64_t> inode_of(int fd) {
  struct stat status {};
  if (fstat(fd, &status) < 0) return std::nullopt;
  return status.st_ino;
}

// The older of the two times: one changes with children, the other with the owner.
std::uint64_t started_ns(int fd) {
  struct stat status {};
  if (fstat(fd, &status) < 0) return HR_UNKNOWN;
  const auto ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  return std::min(ns(status.st_mtim), ns(status.st_ctim));
}

}  // namespace

Result<CgroupInventory> CgroupInventory::open(const std::filesystem::path& root, By by) {
  CgroupInventory inventory;
  inventory.handles_ = by == By::kHandle;
  // Not O_PATH: open_by_handle_at refuses such a descriptor for the mount.
  inventory.root_.reset(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!inventory.root_) return errno_failure("open " + root.string(), errno);
  const auto id = inode_of(inventory.root_.get());
  if (!id) return errno_failure("stat " + root.string(), errno);
  inventory.root_id_ = *id;
  inventory.root_path_ = path_of(inventory.root_.get()).value_or(root.string());
  return inventory;
}

const KnownCgroup* CgroupInventory::find(CgroupId id) const {
  const auto found = known_.find(id.value);
  return found == known_.end() ? nullptr : &found->second.cgroup;
}

const KnownCgroup* CgroupInventory::find(std::string_view path) const {
  for (const auto& [id, entry] : known_)
    if (entry.cgroup.path == path) return &entry.cgroup;
  return nullptr;
}

bool CgroupInventory::update(std::span<const hr_record> records) {
  // The same ids in the same order, as on most ticks: nothing to do.
  bool same = records.size() == last_ids_.size();
  for (std::size_t i = 0; same && i < records.size(); ++i)
    same = records[i].id == last_ids_[i];
  if (same) return false;

  ++updates_;
  unresolved_ = 0;
  last_ids_.clear();
  bool changed = false;
  for (const hr_record& record : records) {
    last_ids_.push_back(record.id);
    if (auto found = known_.find(record.id); found != known_.end()) {
      found->second.seen = updates_;
      continue;
    }
    Entry entry;
    if (!resolve(record, entry)) {
      ++unresolved_;
      continue;
    }
    entry.seen = updates_;
    known_.emplace(record.id, std::move(entry));
    changed = true;
  }
  child_names_.clear();
  listed_parents_.clear();
  const std::size_t gone =
      std::erase_if(known_, [&](const auto& item) { return item.second.seen != updates_; });
  return changed || gone > 0;
}

bool CgroupInventory::resolve(const hr_record& record, Entry& entry) {
  if (!resolve_directory(record, entry)) return false;
  entry.cgroup.started_ns = started_ns(entry.cgroup.directory.get());
  return true;
}

bool CgroupInventory::resolve_directory(const hr_record& record, Entry& entry) {
  entry.cgroup.id = CgroupId{record.id};
  entry.cgroup.parent = CgroupId{record.parent_id};
  if (record.id == root_id_) {
    entry.cgroup.path = "/";
    entry.cgroup.directory.reset(openat(root_.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return static_cast<bool>(entry.cgroup.directory);
  }
  if (handles_ && resolve_by_handle(record, entry)) return true;
  return !handles_ && resolve_by_parent(record, entry);
}

bool CgroupInventory::resolve_by_handle(const hr_record& record, Entry& entry) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + sizeof(hr_u64)> memory{};
  auto* handle = reinterpret_cast<file_handle*>(memory.data());
  handle->handle_bytes = sizeof(hr_u64);
  handle->handle_type = kKernfsHandle;
  std::memcpy(handle->f_handle, &record.id, sizeof record.id);
  Fd directory(open_by_handle_at(root_.get(), handle, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    // ESTALE: gone. EMFILE: the next change tries again. Anything else will not get better.
    if (errno != ESTALE && errno != ENOENT && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
      handles_ = false;
    return false;
  }
  auto path = path_of(directory.get());
  if (!path || !path->starts_with(root_path_) || (*path)[root_path_.size()] != '/') return false;
  path->erase(0, root_path_.size());
  // The kernel marks a removed directory so; a live one may bear such a name, if perverse.
  if (path->ends_with(" (deleted)") && faccessat(root_.get(), path->c_str() + 1, F_OK, 0) < 0)
    return false;
  entry.cgroup.path = std::move(*path);
  entry.cgroup.directory = std::move(directory);
  return true;
}

// Without handles: the parent's directory lists its children's ids as inode numbers.
bool CgroupInventory::resolve_by_parent(const hr_record& record, Entry& entry) {
  const KnownCgroup* parent = find(CgroupId{record.parent_id});
  if (!parent) return false;
  list_children(parent->id);
  const auto named = child_names_.find(record.id);
  if (named == child_names_.end()) return false;
  Fd directory(openat(parent->directory.get(), named->second.c_str(),
                      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory || inode_of(directory.get()) != record.id) return false;
  entry.cgroup.path = (parent->path == "/" ? "" : parent->path) + "/" + named->second;
  entry.cgroup.directory = std::move(directory);
  return true;
}

void CgroupInventory::list_children(CgroupId parent) {
  if (!listed_parents_.emplace(parent.value, true).second) return;
  Fd readable(openat(find(parent)->directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, CloseDir> directory(readable ? fdopendir(readable.get()) : nullptr);
  if (!directory) return;
  readable.release();  // closedir() closes it
  while (const dirent* child = readdir(directory.get()))
    if (child->d_type == DT_DIR || child->d_type == DT_UNKNOWN)
      child_names_.emplace(child->d_ino, child->d_name);
}

}  // namespace headroom::observe
