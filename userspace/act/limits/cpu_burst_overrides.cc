// SPDX-License-Identifier: Apache-2.0
#include "act/limits/cpu_burst_overrides.h"

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

constexpr const char* kBurst = "cpu.max.burst";

std::optional<std::uint64_t> read_burst(int directory) {
  const Fd fd(::openat(directory, kBurst, O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  std::uint64_t value = 0;
  if (n <= 0 || std::from_chars(text.data(), text.data() + n, value).ec != std::errc())
    return std::nullopt;
  return value;
}

int write_burst(int directory, std::uint64_t value) {
  return write_at(directory, kBurst, std::to_string(value) + '\n');
}

}  // namespace

CpuBurstOverrides::CpuBurstOverrides(std::filesystem::path cgroup_root, Save save)
    : root_(cgroup_root.native()), save_(std::move(save)) {}

// Not saved: after a crash the next daemon finds the value restored, and forgets it.
void CpuBurstOverrides::save() {
  (void)save_(found_);
}

void CpuBurstOverrides::restore_former(Found former) {
  found_ = std::move(former);
  withdraw_all();
}

int CpuBurstOverrides::grant(CgroupId cgroup, const std::string& path, std::uint64_t burst) {
  const Fd directory = open_cgroup(root_ + path, cgroup);
  const auto now = directory ? read_burst(directory.get()) : std::nullopt;
  if (!now) return ENOENT;
  if (*now >= burst) return EBUSY;
  const auto [entry, is_new] =
      found_.emplace(cgroup, OriginalCpuBurst{.path = path, .found = *now, .set = burst});
  if (!is_new) return EBUSY;
  // Nothing is written unless the original value was saved.
  if (!save_(found_)) {
    found_.erase(entry);
    return EIO;
  }
  const int error = write_burst(directory.get(), burst);
  if (error != 0) {
    found_.erase(entry);
    save();
  }
  return error;
}

int CpuBurstOverrides::withdraw(CgroupId cgroup) {
  const auto entry = found_.find(cgroup);
  if (entry == found_.end()) return 0;
  const Fd directory = open_cgroup(root_ + entry->second.path, cgroup);
  const auto now = directory ? read_burst(directory.get()) : std::nullopt;
  const bool ours = now == entry->second.set;
  const int error = ours ? write_burst(directory.get(), entry->second.found) : 0;
  if (error != 0) return error;
  found_.erase(entry);
  save();
  return 0;
}

void CpuBurstOverrides::withdraw_all() {
  std::vector<CgroupId> cgroups;
  cgroups.reserve(found_.size());
  for (const auto& [cgroup, entry] : found_)
    cgroups.push_back(cgroup);
  for (const CgroupId cgroup : cgroups)
    (void)withdraw(cgroup);
}

}  // namespace headroom::act
