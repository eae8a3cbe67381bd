// SPDX-License-Identifier: Apache-2.0
// The fields of hr_record as a table: name, group, offset and unit. Code that walks all of them
// (comparison with the files, exposition, recording) reads this table.
#pragma once

#include <headroom/bpf/abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headroom {

inline constexpr std::uint32_t kAllGroups = (1u << HR_GROUPS) - 1;

// In the order of hr_group's bits.
inline constexpr std::array<std::string_view, HR_GROUPS> kGroupNames{
    "memory_usage", "memory_stat", "memory_limits", "memory_events", "cpu", "throttle",
    "psi",          "pids",        "reclaim",       "cpu_limits",    "io",
};

struct RecordField {
  enum class Kind : std::uint8_t {
    kBytes,      // a level
    kLimit,      // bytes, tasks or microseconds, or HR_NO_LIMIT
    kCount,      // never decreases
    kTasks,      // a level
    kWeight,     // a setting
    kCpuTime,    // nanoseconds, never goes back
    kStallTime,  // nanoseconds, never goes back
  };
  std::string_view name;
  hr_group group;
  std::size_t offset;  // in hr_record
  Kind kind;
};

// Every field of hr_record that belongs to a group, in the record's order.
inline constexpr RecordField kRecordFields[] = {
    {"memory_usage", HR_MEMORY_USAGE, offsetof(hr_record, memory_usage), RecordField::Kind::kBytes},
    {"memory_peak", HR_MEMORY_USAGE, offsetof(hr_record, memory_peak), RecordField::Kind::kBytes},
    {"swap_usage", HR_MEMORY_USAGE, offsetof(hr_record, swap_usage), RecordField::Kind::kBytes},
    {"anon", HR_MEMORY_STAT, offsetof(hr_record, anon), RecordField::Kind::kBytes},
    {"file", HR_MEMORY_STAT, offsetof(hr_record, file), RecordField::Kind::kBytes},
    {"inactive_anon", HR_MEMORY_STAT, offsetof(hr_record, inactive_anon),
     RecordField::Kind::kBytes},
    {"active_anon", HR_MEMORY_STAT, offsetof(hr_record, active_anon), RecordField::Kind::kBytes},
    {"inactive_file", HR_MEMORY_STAT, offsetof(hr_record, inactive_file),
     RecordField::Kind::kBytes},
    {"active_file", HR_MEMORY_STAT, offsetof(hr_record, active_file), RecordField::Kind::kBytes},
    {"unevictable", HR_MEMORY_STAT, offsetof(hr_record, unevictable), RecordField::Kind::kBytes},
    {"shmem", HR_MEMORY_STAT, offsetof(hr_record, shmem), RecordField::Kind::kBytes},
    {"file_mapped", HR_MEMORY_STAT, offsetof(hr_record, file_mapped), RecordField::Kind::kBytes},
    {"kernel_stack", HR_MEMORY_STAT, offsetof(hr_record, kernel_stack), RecordField::Kind::kBytes},
    {"pagetables", HR_MEMORY_STAT, offsetof(hr_record, pagetables), RecordField::Kind::kBytes},
    {"slab_reclaimable", HR_MEMORY_STAT, offsetof(hr_record, slab_reclaimable),
     RecordField::Kind::kBytes},
    {"slab_unreclaimable", HR_MEMORY_STAT, offsetof(hr_record, slab_unreclaimable),
     RecordField::Kind::kBytes},
    {"zswap", HR_MEMORY_STAT, offsetof(hr_record, zswap), RecordField::Kind::kBytes},
    {"zswapped", HR_MEMORY_STAT, offsetof(hr_record, zswapped), RecordField::Kind::kBytes},
    {"anon_thp", HR_MEMORY_STAT, offsetof(hr_record, anon_thp), RecordField::Kind::kBytes},
    {"file_thp", HR_MEMORY_STAT, offsetof(hr_record, file_thp), RecordField::Kind::kBytes},
    {"shmem_thp", HR_MEMORY_STAT, offsetof(hr_record, shmem_thp), RecordField::Kind::kBytes},
    {"refault_anon", HR_RECLAIM, offsetof(hr_record, refault_anon), RecordField::Kind::kCount},
    {"refault_file", HR_RECLAIM, offsetof(hr_record, refault_file), RecordField::Kind::kCount},
    {"pgscan", HR_RECLAIM, offsetof(hr_record, pgscan), RecordField::Kind::kCount},
    {"pgsteal", HR_RECLAIM, offsetof(hr_record, pgsteal), RecordField::Kind::kCount},
    {"pgfault", HR_RECLAIM, offsetof(hr_record, pgfault), RecordField::Kind::kCount},
    {"pgmajfault", HR_RECLAIM, offsetof(hr_record, pgmajfault), RecordField::Kind::kCount},
    {"memory_min", HR_MEMORY_LIMITS, offsetof(hr_record, memory_min), RecordField::Kind::kLimit},
    {"memory_low", HR_MEMORY_LIMITS, offsetof(hr_record, memory_low), RecordField::Kind::kLimit},
    {"memory_high", HR_MEMORY_LIMITS, offsetof(hr_record, memory_high), RecordField::Kind::kLimit},
    {"memory_max", HR_MEMORY_LIMITS, offsetof(hr_record, memory_max), RecordField::Kind::kLimit},
    {"swap_max", HR_MEMORY_LIMITS, offsetof(hr_record, swap_max), RecordField::Kind::kLimit},
    {"events_low", HR_MEMORY_EVENTS, offsetof(hr_record, events_low), RecordField::Kind::kCount},
    {"events_high", HR_MEMORY_EVENTS, offsetof(hr_record, events_high), RecordField::Kind::kCount},
    {"events_max", HR_MEMORY_EVENTS, offsetof(hr_record, events_max), RecordField::Kind::kCount},
    {"events_oom", HR_MEMORY_EVENTS, offsetof(hr_record, events_oom), RecordField::Kind::kCount},
    {"events_oom_kill", HR_MEMORY_EVENTS, offsetof(hr_record, events_oom_kill),
     RecordField::Kind::kCount},
    {"cpu_usage_ns", HR_CPU, offsetof(hr_record, cpu_usage_ns), RecordField::Kind::kCpuTime},
    {"cpu_user_ns", HR_CPU, offsetof(hr_record, cpu_user_ns), RecordField::Kind::kCpuTime},
    {"cpu_system_ns", HR_CPU, offsetof(hr_record, cpu_system_ns), RecordField::Kind::kCpuTime},
    {"nr_periods", HR_THROTTLE, offsetof(hr_record, nr_periods), RecordField::Kind::kCount},
    {"nr_throttled", HR_THROTTLE, offsetof(hr_record, nr_throttled), RecordField::Kind::kCount},
    {"throttled_ns", HR_THROTTLE, offsetof(hr_record, throttled_ns), RecordField::Kind::kCpuTime},
    {"nr_bursts", HR_THROTTLE, offsetof(hr_record, nr_bursts), RecordField::Kind::kCount},
    {"burst_ns", HR_THROTTLE, offsetof(hr_record, burst_ns), RecordField::Kind::kCpuTime},
    {"cpu_weight", HR_CPU_LIMITS, offsetof(hr_record, cpu_weight), RecordField::Kind::kWeight},
    {"cpu_quota_us", HR_CPU_LIMITS, offsetof(hr_record, cpu_quota_us), RecordField::Kind::kLimit},
    {"cpu_period_us", HR_CPU_LIMITS, offsetof(hr_record, cpu_period_us), RecordField::Kind::kLimit},
    {"psi_cpu_some", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_CPU][HR_PSI_SOME]),
     RecordField::Kind::kStallTime},
    {"psi_cpu_full", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_CPU][HR_PSI_FULL]),
     RecordField::Kind::kStallTime},
    {"psi_memory_some", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_MEMORY][HR_PSI_SOME]),
     RecordField::Kind::kStallTime},
    {"psi_memory_full", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_MEMORY][HR_PSI_FULL]),
     RecordField::Kind::kStallTime},
    {"psi_io_some", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_IO][HR_PSI_SOME]),
     RecordField::Kind::kStallTime},
    {"psi_io_full", HR_PSI, offsetof(hr_record, psi_ns[HR_PSI_IO][HR_PSI_FULL]),
     RecordField::Kind::kStallTime},
    {"pids_current", HR_PIDS, offsetof(hr_record, pids_current), RecordField::Kind::kTasks},
    {"pids_max", HR_PIDS, offsetof(hr_record, pids_max), RecordField::Kind::kLimit},
    {"io_rbytes", HR_IO, offsetof(hr_record, io_rbytes), RecordField::Kind::kCount},
    {"io_wbytes", HR_IO, offsetof(hr_record, io_wbytes), RecordField::Kind::kCount},
    {"io_rios", HR_IO, offsetof(hr_record, io_rios), RecordField::Kind::kCount},
    {"io_wios", HR_IO, offsetof(hr_record, io_wios), RecordField::Kind::kCount},
    {"swapcached", HR_MEMORY_STAT, offsetof(hr_record, swapcached), RecordField::Kind::kBytes},
};

inline hr_u64 value_of(const hr_record& record, const RecordField& field) {
  hr_u64 value = 0;
  std::memcpy(&value, reinterpret_cast<const char*>(&record) + field.offset, sizeof value);
  return value;
}

// The record of a cgroup of which only the ids are known.
inline hr_record unknown_record(std::uint64_t id, std::uint64_t parent_id) {
  hr_record record;
  std::memset(&record, 0xff, sizeof record);
  record.id = id;
  record.parent_id = parent_id;
  record.valid = 0;
  record.populated = 0;
  return record;
}

// Overwrites the groups' fields with HR_UNKNOWN and clears their bits.
inline void invalidate(hr_record& record, std::uint32_t groups) {
  for (const RecordField& field : kRecordFields)
    if (groups & field.group)
      std::memset(reinterpret_cast<char*>(&record) + field.offset, 0xff, sizeof(hr_u64));
  record.valid &= ~groups;
}

}  // namespace headroom
