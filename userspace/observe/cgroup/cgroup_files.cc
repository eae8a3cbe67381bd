// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
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
  kMemoryPeak,
  kCpuWeight,
  kCpuMax,
  kPidsMax,
  kIoStat,
};
constexpr const char* kNames[] = {
    "memory.current", "memory.swap.current", "memory.stat",     "memory.min",    "memory.low",
    "memory.high",    "memory.max",          "memory.swap.max", "memory.events", "cpu.stat",
    "cpu.pressure",   "memory.pressure",     "io.pressure",     "pids.current",  "cgroup.events",
    "memory.peak",    "cpu.weight",          "cpu.max",         "pids.max",      "io.stat",
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

// Fills the fields whose keys the text has; the others stay as they are. `wanted` is in the
// kernel's own order, so the next key is nearly always the next field.
template <std::size_t N>
void parse_keys(std::string_view text, const Wanted (&wanted)[N]) {
  std::size_t next = 0, found = 0;
  for (FlatKeyed line(text); found < N && line.next();) {
    for (std::size_t tried = 0; tried < N; ++tried) {
      const Wanted& want = wanted[(next + tried) % N];
      if (want.key != line.key()) continue;
      *want.field = line.value();
      next = (next + tried + 1) % N;
      ++found;
      break;
    }
  }
}

template <class... Field>
bool known(Field... field) {
  return ((field != HR_UNKNOWN) && ...);
}

void read_stat(std::string_view text, hr_record& record) {
  parse_keys(text, {{"anon", &record.anon},
                    {"file", &record.file},
                    {"kernel_stack", &record.kernel_stack},
                    {"pagetables", &record.pagetables},
                    {"shmem", &record.shmem},
                    {"zswap", &record.zswap},
                    {"zswapped", &record.zswapped},
                    {"file_mapped", &record.file_mapped},
                    {"swapcached", &record.swapcached},
                    {"anon_thp", &record.anon_thp},
                    {"file_thp", &record.file_thp},
                    {"shmem_thp", &record.shmem_thp},
                    {"inactive_anon", &record.inactive_anon},
                    {"active_anon", &record.active_anon},
                    {"inactive_file", &record.inactive_file},
                    {"active_file", &record.active_file},
                    {"unevictable", &record.unevictable},
                    {"slab_reclaimable", &record.slab_reclaimable},
                    {"slab_unreclaimable", &record.slab_unreclaimable},
                    {"workingset_refault_anon", &record.refault_anon},
                    {"workingset_refault_file", &record.refault_file},
                    {"pgscan", &record.pgscan},
                    {"pgsteal", &record.pgsteal},
                    {"pgfault", &record.pgfault},
                    {"pgmajfault", &record.pgmajfault}});
  if (known(record.inactive_file)) record.valid |= HR_MEMORY_STAT;
  if (known(record.refault_file, record.pgscan, record.pgsteal)) record.valid |= HR_RECLAIM;
}

void read_events(std::string_view text, hr_record& record) {
  parse_keys(text, {{"low", &record.events_low},
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
  hr_u64 bursts = HR_UNKNOWN, burst_time = HR_UNKNOWN;  // since 5.14
  parse_keys(text, {{"usage_usec", &usage},
                    {"user_usec", &user},
                    {"system_usec", &system},
                    {"nr_periods", &periods},
                    {"nr_throttled", &throttled},
                    {"throttled_usec", &throttled_time},
                    {"nr_bursts", &bursts},
                    {"burst_usec", &burst_time}});
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
    record.nr_bursts = bursts;
    if (known(burst_time)) record.burst_ns = nanoseconds(burst_time);
    record.valid |= HR_THROTTLE;
  }
}

void read_cpu_limits(std::string_view weight, std::string_view max, hr_record& record) {
  const auto quota = quota_in(max);
  record.cpu_weight = or_unknown(count_in(weight));
  if (!quota || !known(record.cpu_weight)) return;
  record.cpu_quota_us = quota->quota;
  record.cpu_period_us = quota->period;
  record.valid |= HR_CPU_LIMITS;
}

void read_io(std::string_view text, hr_record& record) {
  if (!text.data())
    return;  // no io controller; an empty file says that nothing was read or written
  thread_local IoStatReader reader;
  const IoTotals totals = reader.totals(text);
  record.io_rbytes = totals.rbytes;
  record.io_wbytes = totals.wbytes;
  record.io_rios = totals.rios;
  record.io_wios = totals.wios;
  record.valid |= HR_IO;
}

}  // namespace

IoTotals IoStatReader::totals(std::string_view io_stat) {
  const IoTotals totals = io_totals(io_stat, majors_);
  if (!totals.unknown_major) return totals;
  std::ifstream file(proc_devices_);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto known = majors_.known | decltype(majors_.known)().set(*totals.unknown_major);
  majors_ = block_majors_in(text);
  majors_.known |= known;  // the list is not read again for one that it does not have
  return io_totals(io_stat, majors_);
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
      file_missing_ = true;
      return {};
    }
    fd = brief.get();
    if (budget.files > 0) {
      --budget.files;
      files_[file] = std::move(brief);
    }
  }
  const ssize_t got = pread(fd, buffer.data(), buffer.size(), 0);
  if (got >= 0) return {buffer.data(), static_cast<std::size_t>(got)};
  // ENODEV: the cgroup is gone, or its controller was turned off.
  if (got < 0 && errno == ENODEV) {
    missing_ |= 1u << file;
    file_missing_ = true;
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
  file_missing_ = false;
  const std::uint32_t valid_before = record.valid;
  invalidate(record, groups);

  // The root has no cgroup.events, and is never empty: kernel threads live there.
  record.populated = is_root;
  if (!is_root)
    for (FlatKeyed line(file(kCgroupEvents)); line.next();)
      if (line.key() == "populated") record.populated = line.value() != 0;

  if (groups & HR_MEMORY_USAGE) {
    record.memory_usage = or_unknown(count_in(file(kMemoryCurrent)));
    record.memory_peak = or_unknown(count_in(file(kMemoryPeak)));
    record.swap_usage = or_unknown(count_in(file(kSwapCurrent)));
    if (known(record.memory_usage)) record.valid |= HR_MEMORY_USAGE;
  }
  if (groups & (HR_MEMORY_STAT | HR_RECLAIM)) read_stat(file(kMemoryStat), record);
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
    record.pids_max = or_unknown(limit_in(file(kPidsMax)));
    if (known(record.pids_current)) record.valid |= HR_PIDS;
  }
  if (groups & HR_CPU_LIMITS) {
    // Each text lies in the one buffer: the weight is short, and kept.
    char weight[24];
    const std::string_view text = file(kCpuWeight);
    const std::size_t length = text.copy(weight, sizeof weight);
    read_cpu_limits({weight, length}, file(kCpuMax), record);
  }
  if (groups & HR_IO) read_io(file(kIoStat), record);
  // The fields of a group that is not valid, or was read beside another, must be unknown.
  const std::uint32_t not_requested = record.valid & ~valid_before & ~groups;
  invalidate(record, (groups & ~record.valid) | not_requested);
  // Every cgroup has cgroup.procs; the directory of a removed one has nothing.
  return !file_missing_ || faccessat(directory_.get(), "cgroup.procs", F_OK, 0) == 0;
}

}  // namespace headroom::observe
