// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_overrides.h"

#include "base/cgroup_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

constexpr std::uint64_t kLeastWeight = 1;
// What the kernel sets when cpu.idle is cleared.
constexpr std::uint64_t kDefaultWeight = 100;

std::optional<std::uint64_t> read_value(int directory, OverriddenFile setting) {
  const Fd fd(::openat(directory, file_of(setting), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  std::uint64_t value = 0;
  if (n <= 0 || std::from_chars(text.data(), text.data() + n, value).ec != std::errc())
    return std::nullopt;
  return value;
}

int write_value(int directory, OverriddenFile setting, std::uint64_t value) {
  return write_at(directory, file_of(setting), std::to_string(value) + '\n');
}

// A weight is lowered, everything else is raised.
bool has_it_already(const OriginalValue& entry) {
  return entry.setting == OverriddenFile::kWeight ? entry.found <= entry.set
                                                  : entry.found >= entry.set;
}

}  // namespace

CgroupOverrides::CgroupOverrides(std::filesystem::path cgroup_root, Save save)
    : root_(cgroup_root.native()), save_(std::move(save)) {}

// Not saved: after a crash the next daemon finds the value restored, and forgets it.
void CgroupOverrides::save() {
  (void)save_(found_);
}

void CgroupOverrides::restore_former(Found former) {
  found_ = std::move(former);
  restore_all();
}

int CgroupOverrides::set_burst(CgroupId cgroup, const std::string& path, std::uint64_t burst) {
  return set(cgroup, {.path = path, .set = burst, .setting = OverriddenFile::kBurst});
}

int CgroupOverrides::suppress(CgroupId cgroup, const std::string& path) {
  const int error = set(cgroup, {.path = path, .set = 1, .setting = OverriddenFile::kIdle});
  if (error == 0 || error == EBUSY || error == EIO) return error;
  return set(cgroup, {.path = path, .set = kLeastWeight, .setting = OverriddenFile::kWeight});
}

int CgroupOverrides::set(CgroupId cgroup, OriginalValue entry) {
  const Fd directory = open_cgroup(root_ + entry.path, cgroup);
  const auto now = directory ? read_value(directory.get(), entry.setting) : std::nullopt;
  if (!now) return ENOENT;
  entry.found = *now;
  if (has_it_already(entry)) return EBUSY;
  if (entry.setting == OverriddenFile::kIdle) {
    const auto weight = read_value(directory.get(), OverriddenFile::kWeight);
    if (!weight) return ENOENT;
    entry.weight = *weight;
  }
  const OverriddenFile setting = entry.setting;
  const std::uint64_t value = entry.set;
  const auto [added, is_new] = found_.emplace(cgroup, std::move(entry));
  if (!is_new) return EBUSY;
  // Nothing is written unless the original value was saved.
  if (!save_(found_)) {
    found_.erase(added);
    return EIO;
  }
  const int error = write_value(directory.get(), setting, value);
  if (error != 0) {
    found_.erase(added);
    save();
  }
  return error;
}

int CgroupOverrides::restore(CgroupId cgroup) {
  const auto found = found_.find(cgroup);
  if (found == found_.end()) return 0;
  OriginalValue& entry = found->second;
  int error = 0;
  if (const Fd directory = open_cgroup(root_ + entry.path, cgroup)) {
    if (entry.setting == OverriddenFile::kIdle)
      error = clear_idle(entry, directory.get());
    else if (read_value(directory.get(), entry.setting) == entry.set)
      error = write_value(directory.get(), entry.setting, entry.found);
  }
  if (error != 0) return error;
  found_.erase(found);
  save();
  return 0;
}

// Two writes: `clearing` is saved before the first, so that a daemon that finds cpu.idle cleared
// knows whether the weight of 100 beside it is the kernel's, or what another program left.
int CgroupOverrides::clear_idle(OriginalValue& entry, int directory) {
  if (read_value(directory, OverriddenFile::kIdle) == entry.set) {
    entry.clearing = true;
    save();
    if (const int error = write_value(directory, OverriddenFile::kIdle, entry.found)) return error;
  }
  const bool reset = entry.clearing && entry.weight != kDefaultWeight &&
                     read_value(directory, OverriddenFile::kWeight) == kDefaultWeight;
  return reset ? write_value(directory, OverriddenFile::kWeight, entry.weight) : 0;
}

void CgroupOverrides::restore_all() {
  std::vector<CgroupId> cgroups;
  cgroups.reserve(found_.size());
  for (const auto& [cgroup, entry] : found_)
    cgroups.push_back(cgroup);
  for (const CgroupId cgroup : cgroups)
    (void)restore(cgroup);
}

}  // namespace headroom::act
