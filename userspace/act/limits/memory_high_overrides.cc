// SPDX-License-Identifier: Apache-2.0
#include "act/limits/memory_high_overrides.h"

#include "act/cpus/cpuset_writer.h"
#include "base/cgroup_directory.h"
#include "base/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

constexpr const char* kProperty = "MemoryHigh";
constexpr const char* kHigh = "memory.high";
// systemd answers before it has written.
constexpr std::chrono::milliseconds kPollPeriod{5}, kPollTimeout{2000};

std::string format_limit(std::optional<Bytes> high) {
  return high ? std::to_string(high->count) : "max";
}

// As systemd writes it.
std::string as_setting(std::optional<Bytes> high) {
  return high ? std::to_string(high->count) : "infinity";
}

std::uint64_t as_property(std::optional<Bytes> high) {
  return high ? static_cast<std::uint64_t>(high->count) : UINT64_MAX;
}

// Absent: it cannot be read. Present without a value: "max".
std::optional<std::optional<Bytes>> read_bytes_or_max(int directory, const char* file) {
  const auto number = number_at(directory, file);
  if (!number) return std::nullopt;
  return *number == kMaxNumber ? std::optional<Bytes>() : Bytes{*number};
}

bool same(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b) return !a == !b;
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return a->count / page == b->count / page;  // the kernel rounds to pages
}

bool has_swap() {
  std::ifstream swaps("/proc/swaps");
  std::string line;
  std::getline(swaps, line);  // the heading
  return static_cast<bool>(std::getline(swaps, line));
}

// The descriptor of a removed cgroup has no files below it, even if another cgroup has its path.
bool is_removed(int directory) {
  return ::faccessat(directory, kHigh, F_OK, 0) != 0 && errno == ENOENT;
}

Result<> write_file(int directory, std::optional<Bytes> high) {
  const std::string text = format_limit(high);
  const Fd fd(::openat(directory, kHigh, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd || ::write(fd.get(), text.data(), text.size()) < 0)
    return errno_failure(std::string("write ") + kHigh, errno);
  return {};
}

}  // namespace

int reclaim_page_cache(int directory, Bytes bytes) {
  const std::string amount = std::to_string(bytes.count);
  const int error = write_at(directory, "memory.reclaim", amount + " swappiness=0");
  if (error != EINVAL) return error;
  if (has_swap()) return EOPNOTSUPP;
  return write_at(directory, "memory.reclaim", amount);
}

MemoryHighOverrides::MemoryHighOverrides(std::filesystem::path cgroup_root, Save save,
                                         IsLifted is_lifted, RuntimeProperties properties)
    : root_(cgroup_root.native()),
      save_(std::move(save)),
      is_lifted_(std::move(is_lifted)),
      properties_(std::move(properties)) {}

MemoryHighOverrides::~MemoryHighOverrides() {
  restore_all();
}

std::size_t MemoryHighOverrides::held() const {
  const std::lock_guard lock(mutex_);
  return found_.size();
}

int MemoryHighOverrides::override_high(CgroupId cgroup, int directory, Bytes high) {
  const std::lock_guard lock(mutex_);
  const std::string absolute_path = path_of_directory(directory);
  if (!absolute_path.starts_with(root_)) return ENOENT;
  restore_failed();
  forget_removed();
  const std::string path = absolute_path.substr(root_.size());
  const auto now = read_bytes_or_max(directory, kHigh);
  if (!now) return ENOENT;
  const auto unit = unit_of(path);
  const bool had_setting = unit && properties_.setting(*unit, kProperty).has_value();
  const auto [entry, fresh] = found_.try_emplace(
      cgroup,
      OriginalMemoryHigh{.path = path, .found = *now, .set = high, .had_setting = had_setting});
  if (!fresh) return EBUSY;
  auto done = save_(found_);
  // Nothing is written unless the original value was saved.
  if (done) done = write(directory, path, high);
  if (done) return 0;
  const int error = done.error().code != 0 ? done.error().code : EIO;
  // The result of the first write is not known.
  if (!write_original(directory, entry->second)) {
    failed_.insert(cgroup);
    return error;
  }
  found_.erase(entry);
  (void)save_(found_);
  return error;
}

// If systemd does not answer, only one call waits for it.
void MemoryHighOverrides::forget_removed() {
  bool answers = true;
  std::erase_if(found_, [&](const auto& entry) {
    const bool is_removed =
        cgroup_id_at(root_ + entry.second.path) != entry.first && !failed_.contains(entry.first);
    answers = answers && (!is_removed || restore_setting(entry.second));
    return is_removed && answers;
  });
}

// The bus may be back. If it is not, only one call waits for it.
void MemoryHighOverrides::restore_failed() {
  for (; !failed_.empty(); failed_.erase(failed_.begin())) {
    const auto entry = found_.find(*failed_.begin());
    if (entry == found_.end()) continue;
    if (!restore_value(entry->first, entry->second)) return;
    found_.erase(entry);
    (void)save_(found_);
  }
}

int MemoryHighOverrides::restore(CgroupId cgroup) {
  const std::lock_guard lock(mutex_);
  restore_failed();
  const auto entry = found_.find(cgroup);
  if (entry == found_.end()) return 0;
  if (const auto done = restore_value(cgroup, entry->second); !done)
    return done.error().code != 0 ? done.error().code : EIO;
  found_.erase(entry);
  (void)save_(found_);
  return 0;
}

void MemoryHighOverrides::restore_all(Found former) {
  const std::lock_guard lock(mutex_);
  if (!former.empty()) properties_.expect_earlier_calls();
  found_.merge(former);
  if (found_.empty()) return;
  std::erase_if(found_, [&](const auto& entry) {
    return restore_value(entry.first, entry.second).has_value();
  });
  for (const auto& [cgroup, held] : found_)
    failed_.insert(cgroup);
  (void)save_(found_);
}

Result<> MemoryHighOverrides::restore_value(CgroupId cgroup, const OriginalMemoryHigh& held) {
  if (is_lifted_ && is_lifted_(cgroup))
    return failure("memory.high of " + held.path + " is lifted for a kill", EBUSY);
  // What systemd has yet to do would come after the restored value.
  if (unit_of(held.path))
    if (auto finished = properties_.finish_earlier_calls(); !finished) return finished;
  const Fd directory = open_cgroup(root_ + held.path, cgroup);
  if (!directory) return restore_setting(held);
  const auto is_ours = [&] {
    const auto now = read_bytes_or_max(directory.get(), kHigh);
    return now && same(*now, held.set);
  };
  if (!is_ours()) return leave_to_others(held);
  // The writer of a limit below usage blocks until usage is below it: that must not be systemd.
  const auto usage = read_bytes_or_max(directory.get(), "memory.current");
  if (held.found && usage && *usage && **usage > *held.found)
    (void)reclaim_page_cache(directory.get(), **usage - *held.found);
  if (!is_ours()) return leave_to_others(held);  // the reclaim may have taken seconds
  return write_original(directory.get(), held);
}

// Another program wrote the value, or an earlier daemon restored it and was killed. A setting that
// systemd still has from us would be written at the next daemon-reload.
Result<> MemoryHighOverrides::leave_to_others(const OriginalMemoryHigh& held) {
  const auto unit = unit_of(held.path);
  const auto setting = unit ? properties_.setting(*unit, kProperty) : std::nullopt;
  if (setting == as_setting(held.set) || (!held.had_setting && setting == as_setting(held.found)))
    return remove_setting(held.path);
  return {};
}

// The cgroup was removed. Its unit, if systemd has it loaded, is or will be started again with the
// value that was set.
Result<> MemoryHighOverrides::restore_setting(const OriginalMemoryHigh& held) {
  const auto unit = unit_of(held.path);
  if (!unit) return {};
  if (auto finished = properties_.finish_earlier_calls(); !finished) return finished;
  if (properties_.setting(*unit, kProperty) != as_setting(held.set)) return leave_to_others(held);
  const auto restored =
      properties_.set_if_loaded(*unit, {{.name = kProperty, .value = as_property(held.found)}});
  if (!restored) return tl::make_unexpected(restored.error());
  if (*restored) wait_until_restarted_is_without(held);
  if (*restored && held.found && held.had_setting) return {};
  return remove_setting(held.path);
}

// systemd answers before it has written. The next override would take ours for the original.
void MemoryHighOverrides::wait_until_restarted_is_without(const OriginalMemoryHigh& held) const {
  const Fd directory(::open((root_ + held.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto is_ours = [&] {
    const auto now = directory ? read_bytes_or_max(directory.get(), kHigh) : std::nullopt;
    return now && same(*now, held.set) && !same(held.found, held.set);
  };
  for (auto elapsed = kPollPeriod; elapsed < kPollTimeout && is_ours(); elapsed += kPollPeriod)
    std::this_thread::sleep_for(kPollPeriod);
}

Result<> MemoryHighOverrides::write_original(int directory, const OriginalMemoryHigh& held) {
  auto done = write(directory, held.path, held.found);
  if (!done && is_removed(directory)) return restore_setting(held);
  // Nothing else removes the setting when the unit is gone. Without it the value is that of the
  // unit's own files, or no limit.
  if (done && (!held.found || !held.had_setting)) return remove_setting(held.path);
  return done;
}

Result<> MemoryHighOverrides::write(int directory, const std::string& path,
                                    std::optional<Bytes> high) {
  const auto unit = unit_of(path);
  if (!unit) return write_file(directory, high);
  if (is_removed(directory)) return failure(path + " was removed", ENOENT);
  if (auto done = properties_.set(*unit, {{.name = kProperty, .value = as_property(high)}}); !done)
    return done;
  for (auto elapsed = kPollPeriod; elapsed < kPollTimeout; elapsed += kPollPeriod) {
    const auto now = read_bytes_or_max(directory, kHigh);
    if (now && same(*now, high)) return {};
    if (!now && is_removed(directory)) return failure(path + " was removed", ENOENT);
    std::this_thread::sleep_for(kPollPeriod);
  }
  return failure("memory.high of " + path + " differs from the value that systemd was given",
                 ETIMEDOUT);
}

Result<> MemoryHighOverrides::remove_setting(const std::string& path) {
  const auto unit = unit_of(path);
  return unit ? properties_.remove(*unit, {kProperty}) : Result<>{};
}

}  // namespace headroom::act
