// SPDX-License-Identifier: Apache-2.0
#include "act/limits/suspended_limits.h"

#include "base/cgroup_directory.h"
#include "base/file_io.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

namespace headroom::act {
namespace {

struct LimitFile {
  const char* file;
  std::string_view lift;    // the value written to lift the limit
  std::string_view lifted;  // what the kernel then shows, or its beginning
  bool is_lifted(std::string_view value) const {
    return lifted.empty() ? value.empty() : value.starts_with(lifted);
  }
};

// memory.high is the last to be restored: its write may wait for reclaim.
constexpr std::array<LimitFile, 4> kLimitFiles{{
    {.file = "cpu.max", .lift = "max", .lifted = "max"},
    {.file = "cpu.weight", .lift = "10000", .lifted = "10000"},
    {.file = "cpuset.cpus", .lift = "\n", .lifted = ""},  // those of the parent
    {.file = "memory.high", .lift = "max", .lifted = "max"},
}};

// Absent: the file is missing or cannot be read.
std::optional<std::string> read_value(int directory, const char* file) {
  const Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (n < 0) return std::nullopt;
  std::string_view value(text.data(), static_cast<std::size_t>(n));
  while (value.ends_with('\n'))
    value.remove_suffix(1);
  return std::string(value);
}

bool write_value(int directory, const char* file, std::string_view value) {
  const Fd fd(::openat(directory, file, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  return fd && ::write(fd.get(), value.data(), value.size()) >= 0;
}

// Leaves in `found` what could not be written.
void restore_values(CgroupId cgroup, OriginalLimits& found) {
  const Fd directory = open_cgroup(found.path, cgroup);
  if (!directory) return found.values.clear();
  for (const LimitFile& limit_file : kLimitFiles) {
    const auto value = found.values.find(limit_file.file);
    if (value == found.values.end()) continue;
    const auto now = read_value(directory.get(), limit_file.file);
    if (!now || !limit_file.is_lifted(*now) ||
        write_value(directory.get(), limit_file.file, value->second))
      found.values.erase(value);
  }
}

}  // namespace

SuspendedLimits::~SuspendedLimits() {
  restore_all();
}

std::size_t SuspendedLimits::lifted() const {
  const std::lock_guard lock(mutex_);
  return found_.size();
}

bool SuspendedLimits::is_lifted(CgroupId cgroup, const std::string& file) const {
  const std::lock_guard lock(mutex_);
  const auto found = found_.find(cgroup);
  return found != found_.end() && found->second.values.contains(file);
}

void SuspendedLimits::add(int directory, std::vector<CgroupId>& cgroups) {
  const auto cgroup = cgroup_id_of(directory);
  std::string path = path_of_directory(directory);
  if (!cgroup || path.empty()) return;
  OriginalLimits found{.path = std::move(path), .values = {}};
  for (const LimitFile& limit_file : kLimitFiles) {
    const auto value = read_value(directory, limit_file.file);
    if (value && !limit_file.is_lifted(*value)) found.values.emplace(limit_file.file, *value);
  }
  const auto known = found_.find(*cgroup);
  if (known == found_.end() && found.values.empty()) return;  // there is nothing to lift
  // Already lifted for another victim: the first value found is the one to restore, unless another
  // program has written one since.
  if (known != found_.end())
    for (auto& [file, value] : found.values)
      known->second.values.insert_or_assign(file, std::move(value));
  else
    found_.emplace(*cgroup, std::move(found));
  cgroups.push_back(*cgroup);
}

std::vector<CgroupId> SuspendedLimits::lift(int directory) {
  const std::lock_guard lock(mutex_);
  const Found before = found_;
  std::vector<CgroupId> cgroups;
  for_each_descendant(directory, [&](int each) { add(each, cgroups); });
  if (cgroups.empty()) return cgroups;
  if (save_ && found_ != before && !save_(found_)) {
    found_ = before;
    return {};
  }
  for (const CgroupId cgroup : cgroups)
    ++victims_[cgroup];
  for_each_descendant(directory, [&](int each) {
    const auto cgroup = cgroup_id_of(each);
    const auto known = cgroup ? found_.find(*cgroup) : found_.end();
    if (known == found_.end()) return;
    for (const LimitFile& limit_file : kLimitFiles)
      if (known->second.values.contains(limit_file.file))
        (void)write_value(each, limit_file.file, limit_file.lift);
  });
  return cgroups;
}

void SuspendedLimits::release(const std::vector<CgroupId>& cgroups) {
  const std::lock_guard lock(mutex_);
  for (const CgroupId cgroup : cgroups)
    if (const auto victims = victims_.find(cgroup); victims != victims_.end())
      if (--victims->second <= 0) victims_.erase(victims);
  // Also those of an earlier call that could not be restored then.
  restore_unless([this](CgroupId cgroup) { return victims_.contains(cgroup); });
}

// The count of victims stays: each of them still calls release().
void SuspendedLimits::restore(CgroupId cgroup) {
  const std::lock_guard lock(mutex_);
  restore_unless([cgroup](CgroupId each) { return each != cgroup; });
}

void SuspendedLimits::restore_all(Found former) {
  const std::lock_guard lock(mutex_);
  found_.merge(former);
  restore_unless([](CgroupId) { return false; });
}

void SuspendedLimits::restore_unless(const std::function<bool(CgroupId)>& keep_lifted) {
  const Found before = found_;
  for (auto& [cgroup, found] : found_)
    if (!keep_lifted(cgroup)) restore_values(cgroup, found);
  std::erase_if(found_, [](const auto& entry) { return entry.second.values.empty(); });
  if (found_ != before) save();
}

void SuspendedLimits::save() {
  // Not saved: after a crash the next daemon finds the values restored, and restores them again.
  if (save_) (void)save_(found_);
}

}  // namespace headroom::act
