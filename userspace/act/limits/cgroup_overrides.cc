// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cgroup_overrides.h"

#include "base/cgroup_directory.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace headroom::act {
namespace {

constexpr std::uint64_t kLeastWeight = 1;
// What the kernel sets when cpu.idle is cleared.
constexpr std::uint64_t kDefaultWeight = 100;
constexpr std::uint64_t kDefaultWriteback = 1;

std::optional<std::uint64_t> read_value(int directory, OverriddenFile file) {
  const auto number = number_at(directory, file_of(file));
  if (!number || *number < 0) return std::nullopt;
  return *number == kMaxNumber ? kNoLimit : static_cast<std::uint64_t>(*number);
}

int write_value(int directory, OverriddenFile file, std::uint64_t value) {
  return write_at(directory, file_of(file),
                  (value == kNoLimit ? "max" : std::to_string(value)) + '\n');
}

bool has_it_already(const OriginalValue& entry) {
  const bool is_raised =
      entry.setting == OverriddenFile::kBurst || entry.setting == OverriddenFile::kIdle;
  return is_raised ? entry.found >= entry.set : entry.found <= entry.set;
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
  return set({.cgroup = cgroup, .path = path, .file = OverriddenFile::kBurst, .value = burst});
}

int CgroupOverrides::suppress(CgroupId cgroup, const std::string& path) {
  const int error =
      set({.cgroup = cgroup, .path = path, .file = OverriddenFile::kIdle, .value = 1});
  if (error == 0 || error == EBUSY || error == EIO) return error;
  return set(
      {.cgroup = cgroup, .path = path, .file = OverriddenFile::kWeight, .value = kLeastWeight});
}

int CgroupOverrides::set(Wanted wanted) {
  return set_all({std::move(wanted)}).front();
}

std::vector<int> CgroupOverrides::set_all(const std::vector<Wanted>& wanted) {
  std::vector<int> errors(wanted.size());
  std::transform(wanted.begin(), wanted.end(), errors.begin(),
                 [this](const Wanted& each) { return prepare(each); });
  if (std::ranges::find(errors, 0) == errors.end()) return errors;
  // Nothing is written unless the original values were saved.
  const bool is_saved = save_(found_).has_value();
  bool failed = false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (errors[i] != 0) continue;
    errors[i] = is_saved ? write(wanted[i].cgroup) : EIO;
    if (errors[i] == 0) continue;
    found_.erase(wanted[i].cgroup);
    failed = true;
  }
  if (failed && is_saved) save();
  return errors;
}

int CgroupOverrides::prepare(const Wanted& wanted) {
  const Fd directory = open_cgroup(root_ + wanted.path, wanted.cgroup);
  const auto now = directory ? read_value(directory.get(), wanted.file) : std::nullopt;
  if (!now) return ENOENT;
  OriginalValue entry{
      .path = wanted.path, .found = *now, .set = wanted.value, .setting = wanted.file};
  if (wanted.inherited && wanted.file == OverriddenFile::kZswapWriteback && *now == wanted.value)
    entry.found = kDefaultWriteback;
  if (has_it_already(entry)) return EBUSY;
  if (wanted.file == OverriddenFile::kIdle) {
    const auto weight = read_value(directory.get(), OverriddenFile::kWeight);
    if (!weight) return ENOENT;
    entry.weight = *weight;
  }
  return found_.emplace(wanted.cgroup, std::move(entry)).second ? 0 : EBUSY;
}

int CgroupOverrides::write(CgroupId cgroup) {
  const OriginalValue& entry = found_.at(cgroup);
  const Fd directory = open_cgroup(root_ + entry.path, cgroup);
  return directory ? write_value(directory.get(), entry.setting, entry.set) : ENOENT;
}

int CgroupOverrides::restore(CgroupId cgroup) {
  const auto found = found_.find(cgroup);
  if (found == found_.end()) return 0;
  if (const int error = write_original(found->second, cgroup)) return error;
  found_.erase(found);
  save();
  return 0;
}

int CgroupOverrides::write_original(OriginalValue& entry, CgroupId cgroup) {
  const Fd directory = open_cgroup(root_ + entry.path, cgroup);
  if (!directory) return 0;
  if (entry.setting == OverriddenFile::kIdle) return clear_idle(entry, directory.get());
  if (read_value(directory.get(), entry.setting) != entry.set) return 0;
  return write_value(directory.get(), entry.setting, entry.found);
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

std::vector<CgroupId> CgroupOverrides::restore_others(const std::set<CgroupId>& kept) {
  std::vector<CgroupId> refused;
  const std::size_t before = found_.size();
  for (auto each = found_.begin(); each != found_.end();) {
    const bool stays = kept.contains(each->first);
    if (!stays && write_original(each->second, each->first) == 0) {
      each = found_.erase(each);
      continue;
    }
    if (!stays) refused.push_back(each->first);
    ++each;
  }
  if (found_.size() != before) save();
  return refused;
}

void CgroupOverrides::restore_all() {
  (void)restore_others({});
}

void CgroupOverrides::forget_changed() {
  const std::size_t forgotten = std::erase_if(found_, [this](const auto& each) {
    const Fd directory = open_cgroup(root_ + each.second.path, each.first);
    const auto now = directory ? read_value(directory.get(), each.second.setting) : std::nullopt;
    return now && *now != each.second.set;
  });
  if (forgotten > 0) save();
}

}  // namespace headroom::act
