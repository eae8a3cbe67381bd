// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup_files.h"

#include "observe/stat_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace headroom::observe {
namespace {

enum File : std::size_t {
  kMemoryCurrent,
  kSwapCurrent,
  kMemoryStat,
  kMemoryMin,
  kMemoryLow,
  kMemoryHigh,
  kMemoryMax,
  kSwapMax,
  kMemoryEvents,
  kCpuStat,
  kCpuPressure,
  kMemoryPressure,
  kIoPressure,
  kPidsCurrent,
  kCgroupEvents,
};
constexpr const char* kNames[] = {
    "memory.current", "memory.swap.current", "memory.stat",     "memory.min",    "memory.low",
    "memory.high",    "memory.max",          "memory.swap.max", "memory.events", "cpu.stat",
    "cpu.pressure",   "memory.pressure",     "io.pressure",     "pids.current",  "cgroup.events",
};
static_assert(std::size(kNames) == CgroupFiles::kFiles);

hr_u64 or_unknown(std::optional<std::uint64_t> value) {
  return value.value_or(HR_UNKNOWN);
}

hr_u64 nanoseconds(std::optional<std::uint64_t> microseconds) {
  std::uint64_t value = 0;
  if (!microseconds || __builtin_mul_overflow(*microseconds, 1000u, &value)) return HR_UNKNOWN;
  return value;
}

struct Wanted {
  std::string_view key;
  hr_u64* field;
};

// Fills the fields whose keys the text has; the rest stay as they are.
template <std::size_t N>
void pick(std::string_view text, const Wanted (&wanted)[N]) {
  std::size_t left = N;
  for (FlatKeyed line(text); left > 0 && line.next();) {
    for (const Wanted& want : wanted) {
      if (want.key != line.key()) continue;
      *want.field = line.value();
      --left;
      break;
    }
  }
}

template <class... Field>
bool known(Field... field) {
  return ((field != HR_UNKNOWN) && ...);
}

void read_stat(std::string_view text, hr_record& record) {
  pick(text, {{"anon", &record.anon},
              {"file", &record.file},
              {"shmem", &record.shmem},
              {"inactive_anon", &record.inactive_anon},
              {"active_anon", &record.active_anon},
              {"inactive_file", &record.inactive_file},
              {"active_file", &record.active_file},
              {"unevictable", &record.unevictable}});
  if (known(record.inactive_file)) record.valid |= HR_MEMORY_STAT;
}

void read_events(std::string_view text, hr_record& record) {
  pick(text, {{"low", &record.events_low},
              {"high", &record.events_high},
              {"max", &record.events_max},
              {"oom", &record.events_oom},
              {"oom_kill", &record.events_oom_kill}});
  if (known(record.events_low, record.events_high, record.events_max, record.events_oom,
            record.events_oom_kill))
    record.valid |= HR_MEMORY_EVENTS;
}

void read_cpu(std::string_view text, std::uint32_t groups, hr_record& record) {
  hr_u64 usage = HR_UNKNOWN, user = HR_UNKNOWN, system = HR_UNKNOWN;
  hr_u64 periods = HR_UNKNOWN, throttled = HR_UNKNOWN, throttled_time = HR_UNKNOWN;
  pick(text, {{"usage_usec", &usage},
              {"user_usec", &user},
              {"system_usec", &system},
              {"nr_periods", &periods},
              {"nr_throttled", &throttled},
              {"throttled_usec", &throttled_time}});
  if ((groups & HR_CPU) && known(usage, user, system)) {
    record.cpu_usage_ns = nanoseconds(usage);
    record.cpu_user_ns = nanoseconds(user);
    record.cpu_system_ns = nanoseconds(system);
    record.valid |= HR_CPU;
  }
  if ((groups & HR_THROTTLE) && known(periods, throttled, throttled_time)) {
    record.nr_periods = periods;
    record.nr_throttled = throttled;
    record.throttled_ns = nanoseconds(throttled_time);
    record.valid |= HR_THROTTLE;
  }
}

}  // namespace

hr_record unknown_record(std::uint64_t id, std::uint64_t parent_id) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);
  record.id = id;
  record.parent_id = parent_id;
  record.valid = 0;
  record.populated = 0;
  return record;
}

void forget(hr_record& record, std::uint32_t groups) {
  const hr_record nothing = unknown_record(0, 0);
  const auto blank = [&](hr_group group, auto... field) {
    if (groups & group) ((record.*field = nothing.*field), ...);
  };
  using R = hr_record;
  blank(HR_MEMORY_USAGE, &R::memory_usage, &R::swap_usage);
  blank(HR_MEMORY_STAT, &R::anon, &R::file, &R::inactive_anon, &R::active_anon, &R::inactive_file,
        &R::active_file, &R::unevictable, &R::shmem);
  blank(HR_MEMORY_LIMITS, &R::memory_min, &R::memory_low, &R::memory_high, &R::memory_max,
        &R::swap_max);
  blank(HR_MEMORY_EVENTS, &R::events_low, &R::events_high, &R::events_max, &R::events_oom,
        &R::events_oom_kill);
  blank(HR_CPU, &R::cpu_usage_ns, &R::cpu_user_ns, &R::cpu_system_ns);
  blank(HR_THROTTLE, &R::nr_periods, &R::nr_throttled, &R::throttled_ns);
  if (groups & HR_PSI) std::memcpy(record.psi_ns, nothing.psi_ns, sizeof record.psi_ns);
  blank(HR_PIDS, &R::pids_current);
  record.valid &= ~groups;
}

Result<CgroupFiles> CgroupFiles::open(int parent, const char* name) {
  Fd directory(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return errno_failure(std::string("open cgroup ") + name, errno);
  struct stat status {};
  if (fstat(directory.get(), &status) < 0)
    return errno_failure(std::string("stat cgroup ") + name, errno);
  return CgroupFiles(std::move(directory), status.st_ino);
}

std::size_t CgroupFiles::kept() const {
  std::size_t count = 0;
  for (const Fd& file : files_)
    count += static_cast<bool>(file);
  return count;
}

std::string_view CgroupFiles::text(std::size_t file, std::span<char> buffer,
                                   DescriptorBudget& budget) {
  Fd brief;  // past the budget: open, read, close
  int fd = files_[file].get();
  if (fd < 0) {
    if (missing_ & (1u << file)) return {};
    brief.reset(openat(directory_.get(), kNames[file], O_RDONLY | O_CLOEXEC));
    if (!brief) {
      if (errno == ENOENT || errno == ENODEV) missing_ |= 1u << file;
      suspect_ = true;
      return {};
    }
    fd = brief.get();
    if (budget.files > 0) {
      --budget.files;
      files_[file] = std::move(brief);
    }
  }
  const ssize_t got = pread(fd, buffer.data(), buffer.size(), 0);
  if (got > 0) return {buffer.data(), static_cast<std::size_t>(got)};
  // ENODEV: the cgroup is gone, or its controller was turned off.
  if (got < 0 && errno == ENODEV) {
    missing_ |= 1u << file;
    suspect_ = true;
    if (files_[file]) {
      files_[file].reset();
      ++budget.files;
    }
  }
  return {};
}

bool CgroupFiles::read(std::uint32_t groups, bool is_root, std::span<char> buffer,
                       DescriptorBudget& budget, hr_record& record) {
  const auto file = [&](std::size_t which) { return text(which, buffer, budget); };
  suspect_ = false;
  forget(record, groups);

  // The root has no cgroup.events, and is never empty: kernel threads live there.
  record.populated = is_root;
  if (!is_root)
    for (FlatKeyed line(file(kCgroupEvents)); line.next();)
      if (line.key() == "populated") record.populated = line.value() != 0;

  if (groups & HR_MEMORY_USAGE) {
    record.memory_usage = or_unknown(count_in(file(kMemoryCurrent)));
    record.swap_usage = or_unknown(count_in(file(kSwapCurrent)));
    if (known(record.memory_usage)) record.valid |= HR_MEMORY_USAGE;
  }
  if (groups & HR_MEMORY_STAT) read_stat(file(kMemoryStat), record);
  if (groups & HR_MEMORY_LIMITS) {
    record.memory_min = or_unknown(limit_in(file(kMemoryMin)));
    record.memory_low = or_unknown(limit_in(file(kMemoryLow)));
    record.memory_high = or_unknown(limit_in(file(kMemoryHigh)));
    record.memory_max = or_unknown(limit_in(file(kMemoryMax)));
    record.swap_max = or_unknown(limit_in(file(kSwapMax)));
    if (known(record.memory_min, record.memory_low, record.memory_high, record.memory_max))
      record.valid |= HR_MEMORY_LIMITS;
  }
  if (groups & HR_MEMORY_EVENTS) read_events(file(kMemoryEvents), record);
  if (groups & (HR_CPU | HR_THROTTLE)) read_cpu(file(kCpuStat), groups, record);
  if (groups & HR_PSI) {
    constexpr File kPressure[] = {kCpuPressure, kMemoryPressure, kIoPressure};
    static_assert(HR_PSI_CPU == 0 && HR_PSI_MEMORY == 1 && HR_PSI_IO == 2);
    bool all = true;
    for (std::size_t i = 0; i < HR_PSI_RESOURCES; ++i) {
      const std::string_view pressure = file(kPressure[i]);
      // cpu.pressure has no "full" line before 5.13.
      record.psi_ns[i][HR_PSI_SOME] = nanoseconds(pressure_total(pressure, "some"));
      record.psi_ns[i][HR_PSI_FULL] = nanoseconds(pressure_total(pressure, "full"));
      all = all && known(record.psi_ns[i][HR_PSI_SOME]);
    }
    if (all) record.valid |= HR_PSI;
  }
  if (groups & HR_PIDS) {
    record.pids_current = or_unknown(count_in(file(kPidsCurrent)));
    if (known(record.pids_current)) record.valid |= HR_PIDS;
  }
  // The fields of a group that is not valid must be unknown too.
  forget(record, groups & ~record.valid);
  // Every cgroup has cgroup.procs; the directory of a removed one has nothing.
  return !suspect_ || faccessat(directory_.get(), "cgroup.procs", F_OK, 0) == 0;
}

}  // namespace headroom::observe
