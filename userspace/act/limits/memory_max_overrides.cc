// SPDX-License-Identifier: Apache-2.0
#include "act/limits/memory_max_overrides.h"

#include "base/cgroup_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

namespace headroom::act {
namespace {

constexpr const char* kMax = "memory.max";
constexpr const char* kHigh = "memory.high";
constexpr const char* kCurrent = "memory.current";

// "max" is the largest number. Absent: the file cannot be read.
std::optional<Bytes> read_limit(int directory, const char* file) {
  const auto number = number_at(directory, file);
  return number ? std::optional(Bytes{*number}) : std::nullopt;
}

// O_NONBLOCK: where the kernel knows it (since 6.16), a limit below usage is only written, and
// reclaim is left to the tasks.
int write_limit(int directory, const char* file, Bytes value) {
  const Fd fd(::openat(directory, file, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_TRUNC));
  if (!fd) return errno;
  const std::string text = value.count == kMaxNumber ? "max" : std::to_string(value.count);
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// Usage may grow by so much between a check and a write before memory.high has slowed its tasks
// down: their sleep is noticeable once they are some 2 % above it.
Bytes guard_below(Bytes limit) {
  return Bytes{(limit.count - limit.count / 16) / 65536 * 65536};
}

}  // namespace

int reclaim_memory(int directory, Bytes bytes, std::optional<int> swappiness) {
  const Fd fd(::openat(directory, "memory.reclaim", O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  const std::string amount = std::to_string(bytes.count);
  const auto write = [&](const std::string& text) {
    return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
  };
  if (!swappiness) return write(amount);
  const int error = write(amount + " swappiness=" + std::to_string(*swappiness));
  return error == EINVAL ? write(amount) : error;
}

MemoryMaxOverrides::MemoryMaxOverrides(std::filesystem::path cgroup_root, Save save)
    : root_(cgroup_root.native()), save_(std::move(save)) {}

// Not saved: after a crash the next daemon finds the value lowered, and forgets it.
void MemoryMaxOverrides::save() {
  (void)save_(found_);
}

std::optional<Bytes> MemoryMaxOverrides::original(CgroupId cgroup) const {
  const auto entry = found_.find(cgroup);
  const bool raised = entry != found_.end() && entry->second.raised();
  return raised ? std::optional(entry->second.found) : std::nullopt;
}

bool MemoryMaxOverrides::has_brake(CgroupId cgroup) const {
  const auto entry = found_.find(cgroup);
  return entry != found_.end() && entry->second.brake;
}

void MemoryMaxOverrides::forget(CgroupId cgroup) {
  if (found_.erase(cgroup) > 0) save();
}

OriginalMemoryMax* MemoryMaxOverrides::prepare(CgroupId cgroup, int directory,
                                               const std::string& path, Bytes ceiling) {
  if (const auto known = found_.find(cgroup); known != found_.end()) return &known->second;
  const auto now = read_limit(directory, kMax);
  if (!now) return nullptr;
  const auto entry =
      found_
          .emplace(cgroup,
                   OriginalMemoryMax{.path = path, .found = *now, .set = *now, .ceiling = ceiling})
          .first;
  if (save_(found_)) return &entry->second;
  found_.erase(entry);
  return nullptr;
}

void MemoryMaxOverrides::erase_unchanged(Entry entry) {
  if (!entry->second.raised() && !entry->second.brake) found_.erase(entry);
  save();
}

int MemoryMaxOverrides::raise(CgroupId cgroup, int directory, const std::string& path, Bytes to,
                              Bytes ceiling) {
  // Nothing is written unless the original value was saved.
  OriginalMemoryMax* const entry = prepare(cgroup, directory, path, ceiling);
  if (!entry) return EIO;
  const auto now = read_limit(directory, kMax);
  if (!now || *now != entry->set) {
    (void)release_brake(cgroup, directory);
    forget(cgroup);
    return ESTALE;
  }
  const int error = write_limit(directory, kMax, to);
  if (error == 0) entry->set = to;
  erase_unchanged(found_.find(cgroup));
  return error;
}

namespace {

void forget_brake(OriginalMemoryMax& held) {
  held.brake.reset();
  held.high_found = Bytes{INT64_MAX};
}

}  // namespace

// As a brake of its own, if there is none: after a crash the next daemon takes it back.
int MemoryMaxOverrides::write_guard(int directory, OriginalMemoryMax& held, Bytes guard,
                                    Bytes high) {
  if (held.brake) return write_limit(directory, kHigh, guard);
  held.brake = guard;
  held.high_found = high;
  const int error = save_(found_) ? write_limit(directory, kHigh, guard) : EIO;
  if (error == 0) return 0;
  forget_brake(held);
  save();
  return error;
}

int MemoryMaxOverrides::lower(CgroupId cgroup, int directory, Bytes to) {
  const auto entry = found_.find(cgroup);
  if (entry == found_.end()) return 0;
  OriginalMemoryMax& held = entry->second;
  const auto now = read_limit(directory, kMax);
  const auto high = read_limit(directory, kHigh);
  const auto usage = read_limit(directory, kCurrent);
  if (!now || !high || !usage) return ENOENT;
  if (*now != held.set) {  // another program wrote it
    (void)release_brake(cgroup, directory);
    forget(cgroup);
    return 0;
  }
  const Bytes guard = guard_below(to);
  if (*usage > guard) return EAGAIN;
  const auto brake = held.brake;
  if (*high > guard)
    if (const int error = write_guard(directory, held, guard, *high); error != 0) return error;
  const auto checked = read_limit(directory, kCurrent);
  int error = checked && *checked <= guard ? write_limit(directory, kMax, to) : EAGAIN;
  // Watched: if usage has come near all the same, the limit goes back to where it was.
  const auto after = read_limit(directory, kCurrent);
  if (error == 0 && after && after->count > to.count - to.count / 64) {
    (void)write_limit(directory, kMax, *now);
    error = EAGAIN;
  }
  // The brake of the former limit is above the new one.
  const bool brake_ends = brake && error == 0 && *brake >= to;
  if (*high > guard) (void)write_limit(directory, kHigh, brake_ends ? Bytes{INT64_MAX} : *high);
  if (brake_ends || !brake) forget_brake(held);
  if (error != 0) {
    save();
    return error;
  }
  // Exactly what was found, which need not be a multiple of 64 KiB.
  if (to < held.found) (void)write_limit(directory, kMax, held.found);
  held.set = std::max(to, held.found);
  erase_unchanged(entry);
  return 0;
}

int MemoryMaxOverrides::set_brake(CgroupId cgroup, int directory, const std::string& path,
                                  Bytes high, Bytes ceiling) {
  const auto now = read_limit(directory, kHigh);
  if (!now) return ENOENT;
  const auto known = found_.find(cgroup);
  const bool ours = known != found_.end() && known->second.brake == now;
  if (ours && *now == high) return 0;
  if (now->count != INT64_MAX && !ours) {
    if (known != found_.end()) {
      known->second.brake.reset();
      erase_unchanged(known);
    }
    return EBUSY;
  }
  OriginalMemoryMax* const entry = prepare(cgroup, directory, path, ceiling);
  if (!entry) return EIO;
  const auto before = entry->brake;
  entry->brake = high;
  save();
  const int error = write_limit(directory, kHigh, high);
  if (error != 0) {
    entry->brake = before;
    erase_unchanged(found_.find(cgroup));
  }
  return error;
}

int MemoryMaxOverrides::release_brake(CgroupId cgroup, int directory) {
  const auto entry = found_.find(cgroup);
  if (entry == found_.end() || !entry->second.brake) return 0;
  OriginalMemoryMax& held = entry->second;
  // After a crash the value in the file may be of another moment: between the two bounds it is
  // ours.
  const auto now = read_limit(directory, kHigh);
  const bool ours = now && *now >= guard_below(held.found) && *now <= held.ceiling;
  const int error = ours ? write_limit(directory, kHigh, held.high_found) : 0;
  forget_brake(held);
  erase_unchanged(entry);
  return error;
}

int MemoryMaxOverrides::restore(CgroupId cgroup, const OriginalMemoryMax& entry) {
  const Fd directory = open_cgroup(root_ + entry.path, cgroup);
  if (!directory) return ENOENT;
  (void)release_brake(cgroup, directory.get());
  const auto now = read_limit(directory.get(), kMax);
  const auto usage = read_limit(directory.get(), kCurrent);
  if (!now || !usage || !found_.contains(cgroup)) return ENOENT;
  if (*now <= entry.found || *now > entry.ceiling) return ENOENT;  // another program's value
  found_.at(cgroup).set = *now;
  const Bytes goal = guard_below(entry.found);
  if (*usage > goal) (void)reclaim_memory(directory.get(), Bytes{usage->count - goal.count});
  return lower(cgroup, directory.get(), entry.found);
}

void MemoryMaxOverrides::restore_all() {
  const Found entries = found_;
  for (const auto& [cgroup, entry] : entries)
    if (restore(cgroup, entry) == ENOENT) found_.erase(cgroup);
  save();
}

}  // namespace headroom::act
