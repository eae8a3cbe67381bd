// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/cgroup_families.h"

#include <headroom/snapshot.h>

#include <cstdint>
#include <limits>
#include <unordered_map>

namespace headroom::report {
namespace {

template <class Value>
std::vector<const Value*> by_record(const CgroupTable& table, const WaitTable<Value>& waits) {
  std::unordered_map<std::uint64_t, const Value*> known;
  known.reserve(waits.ids.size());
  for (std::size_t i = 0; i < waits.ids.size(); ++i)
    known.emplace(waits.ids[i], &waits.values[i]);
  std::vector<const Value*> found(table.records.size(), nullptr);
  if (known.empty()) return found;
  for (std::size_t i = 0; i < table.records.size(); ++i)
    if (const auto it = known.find(table.records[i].id); it != known.end()) found[i] = it->second;
  return found;
}

}  // namespace

CgroupWaits::CgroupWaits(const CgroupTable& table)
    : stalls_(by_record(table, table.stalls)), throttles_(by_record(table, table.throttles)) {}

namespace {

template <hr_u64 hr_record::*Field>
std::uint64_t field(const CgroupMetricInput& row) {
  return row.record.*Field;
}
template <hr_psi_resource Resource, hr_psi_kind Kind>
std::uint64_t psi(const CgroupMetricInput& row) {
  return row.record.psi_ns[Resource][Kind];
}
// The root cgroup has no memory.current: the kubelet uses anonymous memory plus page cache.
bool is_root_with_stat(const hr_record& record) {
  return record.parent_id == 0 && (record.valid & HR_MEMORY_STAT) && record.anon != HR_UNKNOWN &&
         record.file != HR_UNKNOWN && record.inactive_file != HR_UNKNOWN;
}
std::uint64_t memory_usage(const CgroupMetricInput& row) {
  const hr_record& record = row.record;
  if (record.valid & HR_MEMORY_USAGE) return record.memory_usage;
  return is_root_with_stat(record) ? record.anon + record.file : HR_UNKNOWN;
}
std::uint64_t working_set_or_unknown(const CgroupMetricInput& row) {
  const hr_record& record = row.record;
  if (const auto bytes = working_set(record)) return static_cast<std::uint64_t>(bytes->count);
  if (!is_root_with_stat(record)) return HR_UNKNOWN;
  const std::uint64_t used = record.anon + record.file;
  return used > record.inactive_file ? used - record.inactive_file : 0;
}
// cAdvisor has no series for the quota of a container without one.
std::uint64_t quota_if_any(const CgroupMetricInput& row) {
  return row.record.cpu_quota_us == HR_NO_LIMIT ? HR_UNKNOWN : row.record.cpu_quota_us;
}
// cAdvisor has no series for the quota periods of a container without a quota either. The root
// cannot have one.
template <hr_u64 hr_record::*Field>
std::uint64_t if_quota(const CgroupMetricInput& row) {
  const bool unlimited = row.record.parent_id == 0 || ((row.record.valid & HR_CPU_LIMITS) &&
                                                       row.record.cpu_quota_us == HR_NO_LIMIT);
  return unlimited ? HR_UNKNOWN : row.record.*Field;
}
// As in cAdvisor: the cpu.shares of cgroup v1 that the linear formula converts to this cpu.weight.
// An idle cgroup has no shares.
std::uint64_t cpu_shares(const CgroupMetricInput& row) {
  const std::uint64_t weight = row.record.cpu_weight;
  if (weight == 0 || weight > 10'000) return HR_UNKNOWN;
  return 2 + (weight - 1) * 262'142 / 9'999;
}
// A cause that never occurred has no series.
template <hr_stall_cause Cause>
std::uint64_t stall_ns(const CgroupMetricInput& row) {
  return row.stalls && row.stalls->causes[Cause].count ? row.stalls->causes[Cause].ns : HR_UNKNOWN;
}
template <hr_stall_cause Cause>
std::uint64_t stall_count(const CgroupMetricInput& row) {
  return row.stalls && row.stalls->causes[Cause].count ? row.stalls->causes[Cause].count
                                                       : HR_UNKNOWN;
}
std::uint64_t throttle_ns(const CgroupMetricInput& row) {
  return row.throttles ? row.throttles->ns : HR_UNKNOWN;
}
std::uint64_t throttle_count(const CgroupMetricInput& row) {
  return row.throttles ? row.throttles->count : HR_UNKNOWN;
}
std::uint64_t started(const CgroupMetricInput& row) {
  return row.started_ns;
}
std::uint64_t read_at(const CgroupMetricInput& row) {
  return row.read_at_ns;
}

constexpr auto kGauge = prometheus::MetricType::Gauge;
constexpr auto kCounter = prometheus::MetricType::Counter;
constexpr double kUnscaled = 1;
constexpr double kNanoseconds = 1e9;

constexpr std::string_view kStallTimeHelp =
    "Time that tasks of the cgroup were stalled on memory, by cause.";
constexpr std::string_view kStallCountHelp = "Memory stalls, by cause.";

constexpr CgroupFamily kFamilies[] = {
    // Memory.
    {"container_memory_usage_bytes", "Memory in use, page cache included (memory.current).", kGauge,
     0, kUnscaled, memory_usage},
    {"container_memory_working_set_bytes",
     "Memory in use minus inactive file pages: evictions are based on it.", kGauge, 0, kUnscaled,
     working_set_or_unknown},
    {"container_memory_rss", "Anonymous memory in bytes (memory.stat anon).", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::anon>},
    {"container_memory_cache", "Page cache in bytes, tmpfs included (memory.stat file).", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::file>},
    {"container_memory_swap", "Swap in use in bytes (memory.swap.current).", kGauge,
     HR_MEMORY_USAGE, kUnscaled, field<&hr_record::swap_usage>},
    {"container_memory_total_active_file_bytes", "File pages in active use.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::active_file>},
    {"container_memory_total_inactive_file_bytes", "File pages that are the first to be reclaimed.",
     kGauge, HR_MEMORY_STAT, kUnscaled, field<&hr_record::inactive_file>},
    {"headroom_cgroup_memory_active_anon_bytes", "Anonymous memory in active use.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::active_anon>},
    {"headroom_cgroup_memory_inactive_anon_bytes", "Anonymous memory that was not used recently.",
     kGauge, HR_MEMORY_STAT, kUnscaled, field<&hr_record::inactive_anon>},
    {"headroom_cgroup_memory_unevictable_bytes", "Memory that is locked.", kGauge, HR_MEMORY_STAT,
     kUnscaled, field<&hr_record::unevictable>},
    {"headroom_cgroup_memory_shmem_bytes", "Shared memory and tmpfs, swapped out or not.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::shmem>},
    {"container_memory_max_usage_bytes", "Maximum memory usage recorded (memory.peak).", kGauge,
     HR_MEMORY_USAGE, kUnscaled, field<&hr_record::memory_peak>},
    {"container_memory_mapped_file", "File pages that are mapped, in bytes.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::file_mapped>},
    {"headroom_cgroup_memory_kernel_stack_bytes", "Kernel stacks.", kGauge, HR_MEMORY_STAT,
     kUnscaled, field<&hr_record::kernel_stack>},
    {"headroom_cgroup_memory_pagetables_bytes", "Page tables.", kGauge, HR_MEMORY_STAT, kUnscaled,
     field<&hr_record::pagetables>},
    {"headroom_cgroup_memory_slab_reclaimable_bytes", "Kernel objects that reclaim may free.",
     kGauge, HR_MEMORY_STAT, kUnscaled, field<&hr_record::slab_reclaimable>},
    {"headroom_cgroup_memory_slab_unreclaimable_bytes", "Kernel objects that reclaim cannot free.",
     kGauge, HR_MEMORY_STAT, kUnscaled, field<&hr_record::slab_unreclaimable>},
    {"headroom_cgroup_memory_zswap_bytes", "Memory used by compressed pages.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::zswap>},
    {"headroom_cgroup_memory_zswapped_bytes", "Memory that was compressed.", kGauge, HR_MEMORY_STAT,
     kUnscaled, field<&hr_record::zswapped>},
    {"headroom_cgroup_memory_swapcached_bytes",
     "Of the swap in use, what is in memory as well (memory.stat swapcached).", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::swapcached>},
    {"headroom_cgroup_memory_anon_thp_bytes", "Anonymous memory in transparent huge pages.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::anon_thp>},
    {"headroom_cgroup_memory_file_thp_bytes", "File pages in transparent huge pages.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::file_thp>},
    {"headroom_cgroup_memory_shmem_thp_bytes", "Shared memory in transparent huge pages.", kGauge,
     HR_MEMORY_STAT, kUnscaled, field<&hr_record::shmem_thp>},

    // Memory limits.
    {"container_spec_memory_limit_bytes", "Memory limit (memory.max); 0 is no limit.", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_max>},
    {"container_spec_memory_reservation_limit_bytes",
     "Memory protected while unprotected memory can be reclaimed (memory.low).", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_low>},
    {"container_spec_memory_swap_limit_bytes", "Swap limit (memory.swap.max); 0 is no limit.",
     kGauge, HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::swap_max>},
    {"headroom_cgroup_memory_min_bytes", "Memory that is never reclaimed (memory.min).", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_min>},
    {"headroom_cgroup_memory_high_bytes",
     "Memory above which the cgroup is throttled (memory.high); +Inf is no limit.", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_high>},

    // Memory events.
    {"container_memory_events_high_total",
     "Times memory.high was exceeded and the cgroup was throttled.", kCounter, HR_MEMORY_EVENTS,
     kUnscaled, field<&hr_record::events_high>},
    {"container_memory_events_max_total", "Times memory.max was about to be exceeded.", kCounter,
     HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_max>},
    {"container_oom_events_total", "Processes killed by the kernel's OOM killer.", kCounter,
     HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_oom_kill>},
    {"headroom_cgroup_memory_events_low_total",
     "Times memory was reclaimed below memory.low: the protection was overcommitted.", kCounter,
     HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_low>},
    {"headroom_cgroup_memory_events_oom_total",
     "Times memory.max was reached and an allocation was about to fail.", kCounter,
     HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_oom>},

    // Reclaim and page faults, of the cgroup and its descendants.
    {"container_memory_failures_total", "Page faults; pgmajfault: faults that waited for a disk.",
     kCounter, HR_RECLAIM, kUnscaled, field<&hr_record::pgfault>,
     "failure_type=\"pgfault\",scope=\"hierarchy\""},
    {"container_memory_failures_total", "Page faults; pgmajfault: faults that waited for a disk.",
     kCounter, HR_RECLAIM, kUnscaled, field<&hr_record::pgmajfault>,
     "failure_type=\"pgmajfault\",scope=\"hierarchy\""},
    {"container_memory_pgscan_total", "Pages that reclaim looked at.", kCounter, HR_RECLAIM,
     kUnscaled, field<&hr_record::pgscan>},
    {"container_memory_pgsteal_total", "Pages that reclaim freed.", kCounter, HR_RECLAIM, kUnscaled,
     field<&hr_record::pgsteal>},
    {"container_memory_workingset_refault_anon_total",
     "Anonymous pages that were needed again soon after reclaim.", kCounter, HR_RECLAIM, kUnscaled,
     field<&hr_record::refault_anon>},
    {"container_memory_workingset_refault_file_total",
     "File pages that were needed again soon after reclaim.", kCounter, HR_RECLAIM, kUnscaled,
     field<&hr_record::refault_file>},

    // CPU. cAdvisor labels the first family by CPU; headroom has no per-CPU series.
    {"container_cpu_usage_seconds_total", "CPU time used.", kCounter, HR_CPU, kNanoseconds,
     field<&hr_record::cpu_usage_ns>, "cpu=\"total\""},
    {"container_cpu_user_seconds_total", "CPU time used in user mode.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_user_ns>},
    {"container_cpu_system_seconds_total", "CPU time used in the kernel.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_system_ns>},
    {"container_cpu_cfs_periods_total", "CPU quota periods that passed.", kCounter, HR_THROTTLE,
     kUnscaled, if_quota<&hr_record::nr_periods>},
    {"container_cpu_cfs_throttled_periods_total",
     "CPU quota periods in which the cgroup was throttled.", kCounter, HR_THROTTLE, kUnscaled,
     if_quota<&hr_record::nr_throttled>},
    {"container_cpu_cfs_throttled_seconds_total", "Time the cgroup was throttled by its CPU quota.",
     kCounter, HR_THROTTLE, kNanoseconds, if_quota<&hr_record::throttled_ns>},
    {"container_cpu_cfs_burst_periods_total",
     "CPU quota periods in which accumulated quota was used.", kCounter, HR_THROTTLE, kUnscaled,
     if_quota<&hr_record::nr_bursts>},
    {"container_cpu_cfs_burst_seconds_total",
     "CPU time used above the quota from accumulated quota.", kCounter, HR_THROTTLE, kNanoseconds,
     if_quota<&hr_record::burst_ns>},
    {"headroom_cgroup_cpu_bursts_total", "CPU quota periods in which accumulated quota was used.",
     kCounter, HR_THROTTLE, kUnscaled, field<&hr_record::nr_bursts>},
    {"headroom_cgroup_cpu_burst_seconds_total",
     "CPU time used above the quota from accumulated quota.", kCounter, HR_THROTTLE, kNanoseconds,
     field<&hr_record::burst_ns>},
    {"headroom_cgroup_cpu_weight",
     "Share of CPU time under contention (cpu.weight, 1 to 10000; 0 is idle).", kGauge,
     HR_CPU_LIMITS, kUnscaled, field<&hr_record::cpu_weight>},
    {"container_spec_cpu_shares", "CPU shares of cgroup v1 that cpu.weight stands for.", kGauge,
     HR_CPU_LIMITS, kUnscaled, cpu_shares},
    {"container_spec_cpu_quota",
     "CPU time allowed in each period, in microseconds; absent without a limit.", kGauge,
     HR_CPU_LIMITS, kUnscaled, quota_if_any},
    {"container_spec_cpu_period", "Length of a quota period in microseconds.", kGauge,
     HR_CPU_LIMITS, kUnscaled, field<&hr_record::cpu_period_us>},

    // Disks.
    {"container_fs_reads_bytes_total", "Bytes read from block devices, all devices.", kCounter,
     HR_IO, kUnscaled, field<&hr_record::io_rbytes>, "device=\"\""},
    {"container_fs_writes_bytes_total", "Bytes written to block devices, all devices.", kCounter,
     HR_IO, kUnscaled, field<&hr_record::io_wbytes>, "device=\"\""},
    {"container_fs_reads_total", "Read operations on block devices, all devices.", kCounter, HR_IO,
     kUnscaled, field<&hr_record::io_rios>, "device=\"\""},
    {"container_fs_writes_total", "Write operations on block devices, all devices.", kCounter,
     HR_IO, kUnscaled, field<&hr_record::io_wios>, "device=\"\""},

    // Pressure.
    {"container_pressure_cpu_waiting_seconds_total", "Time in which some task waited for CPU.",
     kCounter, HR_PSI, kNanoseconds, psi<HR_PSI_CPU, HR_PSI_SOME>},
    {"container_pressure_cpu_stalled_seconds_total", "Time in which all tasks waited for CPU.",
     kCounter, HR_PSI, kNanoseconds, psi<HR_PSI_CPU, HR_PSI_FULL>},
    {"container_pressure_memory_waiting_seconds_total",
     "Time in which some task waited for memory.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_MEMORY, HR_PSI_SOME>},
    {"container_pressure_memory_stalled_seconds_total",
     "Time in which all tasks waited for memory.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_MEMORY, HR_PSI_FULL>},
    {"container_pressure_io_waiting_seconds_total", "Time in which some task waited for I/O.",
     kCounter, HR_PSI, kNanoseconds, psi<HR_PSI_IO, HR_PSI_SOME>},
    {"container_pressure_io_stalled_seconds_total", "Time in which all tasks waited for I/O.",
     kCounter, HR_PSI, kNanoseconds, psi<HR_PSI_IO, HR_PSI_FULL>},

    // Time that tasks waited, by cause.
    {"headroom_memory_stall_seconds_total", kStallTimeHelp, kCounter, 0, kNanoseconds,
     stall_ns<HR_STALL_GLOBAL>, "cause=\"global\""},
    {"headroom_memory_stall_seconds_total", kStallTimeHelp, kCounter, 0, kNanoseconds,
     stall_ns<HR_STALL_LIMIT>, "cause=\"limit\""},
    {"headroom_memory_stall_seconds_total", kStallTimeHelp, kCounter, 0, kNanoseconds,
     stall_ns<HR_STALL_HIGH>, "cause=\"high\""},
    {"headroom_memory_stall_seconds_total", kStallTimeHelp, kCounter, 0, kNanoseconds,
     stall_ns<HR_STALL_REFAULT>, "cause=\"refault\""},
    {"headroom_memory_stall_seconds_total", kStallTimeHelp, kCounter, 0, kNanoseconds,
     stall_ns<HR_STALL_COMPACTION>, "cause=\"compaction\""},
    {"headroom_memory_stalls_total", kStallCountHelp, kCounter, 0, kUnscaled,
     stall_count<HR_STALL_GLOBAL>, "cause=\"global\""},
    {"headroom_memory_stalls_total", kStallCountHelp, kCounter, 0, kUnscaled,
     stall_count<HR_STALL_LIMIT>, "cause=\"limit\""},
    {"headroom_memory_stalls_total", kStallCountHelp, kCounter, 0, kUnscaled,
     stall_count<HR_STALL_HIGH>, "cause=\"high\""},
    {"headroom_memory_stalls_total", kStallCountHelp, kCounter, 0, kUnscaled,
     stall_count<HR_STALL_REFAULT>, "cause=\"refault\""},
    {"headroom_memory_stalls_total", kStallCountHelp, kCounter, 0, kUnscaled,
     stall_count<HR_STALL_COMPACTION>, "cause=\"compaction\""},
    {"headroom_cpu_throttle_seconds_total",
     "Time that run queues of the cgroup were throttled by the CPU quota.", kCounter, 0,
     kNanoseconds, throttle_ns},
    {"headroom_cpu_throttles_total", "Throttle periods of the run queues of the cgroup.", kCounter,
     0, kUnscaled, throttle_count},

    // Tasks, and the cgroup itself.
    {"container_threads", "Tasks (pids.current).", kGauge, HR_PIDS, kUnscaled,
     field<&hr_record::pids_current>},
    {"container_threads_max", "Tasks allowed (pids.max); 0 is no limit.", kGauge, HR_PIDS,
     kUnscaled, field<&hr_record::pids_max>},
    {"container_start_time_seconds", "Unix time at which the cgroup was created.", kGauge, 0,
     kNanoseconds, started},
    {"container_last_seen", "Unix time of these readings.", kGauge, 0, kNanoseconds, read_at},

    // Of pods and of the node's own cgroups, by few labels and under names of headroom's own: where
    // a kubelet is scraped,
    // container_* are left to it.
    {"headroom_pod_cpu_usage_seconds_total", "CPU time used by the pod.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_usage_ns>, "", FamilyOf::kPods},
    {"headroom_pod_cpu_throttled_seconds_total", "Time the pod was throttled by its CPU quota.",
     kCounter, HR_THROTTLE, kNanoseconds, if_quota<&hr_record::throttled_ns>, "", FamilyOf::kPods},
    {"headroom_pod_pressure_waiting_seconds_total",
     "Time in which some task of the pod waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_CPU, HR_PSI_SOME>, "resource=\"cpu\"", FamilyOf::kPods},
    {"headroom_pod_pressure_waiting_seconds_total",
     "Time in which some task of the pod waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_MEMORY, HR_PSI_SOME>, "resource=\"memory\"", FamilyOf::kPods},
    {"headroom_pod_pressure_waiting_seconds_total",
     "Time in which some task of the pod waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_IO, HR_PSI_SOME>, "resource=\"io\"", FamilyOf::kPods},
    {"headroom_pod_memory_swap_bytes", "Memory of the pod in swap.", kGauge, HR_MEMORY_USAGE,
     kUnscaled, field<&hr_record::swap_usage>, "", FamilyOf::kPods},
    {"headroom_pod_memory_events_total",
     "Times the pod came to a limit of its memory: memory.high, memory.max, or an allocation that "
     "failed there.",
     kCounter, HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_high>, "event=\"high\"",
     FamilyOf::kPods},
    {"headroom_pod_memory_events_total",
     "Times the pod came to a limit of its memory: memory.high, memory.max, or an allocation that "
     "failed there.",
     kCounter, HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_max>, "event=\"max\"",
     FamilyOf::kPods},
    {"headroom_pod_memory_events_total",
     "Times the pod came to a limit of its memory: memory.high, memory.max, or an allocation that "
     "failed there.",
     kCounter, HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_oom>, "event=\"oom\"",
     FamilyOf::kPods},
    {"headroom_pod_oom_kills_total", "Processes of the pod killed by the kernel's OOM killer.",
     kCounter, HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_oom_kill>, "",
     FamilyOf::kPods},
    {"headroom_pod_refaults_total", "Pages of the pod that were needed again soon after reclaim.",
     kCounter, HR_RECLAIM, kUnscaled, field<&hr_record::refault_anon>, "kind=\"anon\"",
     FamilyOf::kPods},
    {"headroom_pod_refaults_total", "Pages of the pod that were needed again soon after reclaim.",
     kCounter, HR_RECLAIM, kUnscaled, field<&hr_record::refault_file>, "kind=\"file\"",
     FamilyOf::kPods},
    {"headroom_pod_reclaim_pages_total",
     "Pages of the pod that reclaim looked at, and that it freed.", kCounter, HR_RECLAIM, kUnscaled,
     field<&hr_record::pgscan>, "result=\"scanned\"", FamilyOf::kPods},
    {"headroom_pod_reclaim_pages_total",
     "Pages of the pod that reclaim looked at, and that it freed.", kCounter, HR_RECLAIM, kUnscaled,
     field<&hr_record::pgsteal>, "result=\"freed\"", FamilyOf::kPods},
    {"headroom_pod_io_bytes_total", "Bytes that the pod read from and wrote to block devices.",
     kCounter, HR_IO, kUnscaled, field<&hr_record::io_rbytes>, "direction=\"read\"",
     FamilyOf::kPods},
    {"headroom_pod_io_bytes_total", "Bytes that the pod read from and wrote to block devices.",
     kCounter, HR_IO, kUnscaled, field<&hr_record::io_wbytes>, "direction=\"write\"",
     FamilyOf::kPods},
    {"headroom_node_cgroup_memory_working_set_bytes", "Memory in use minus inactive file pages.",
     kGauge, 0, kUnscaled, working_set_or_unknown, "", FamilyOf::kNode},
    {"headroom_node_cgroup_memory_max_bytes", "Memory limit (memory.max); +Inf is no limit.",
     kGauge, HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_max>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_memory_high_bytes",
     "Memory above which the cgroup is throttled (memory.high); +Inf is no limit.", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_high>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_memory_low_bytes",
     "Memory protected while unprotected memory can be reclaimed (memory.low).", kGauge,
     HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_low>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_memory_min_bytes", "Memory that is never reclaimed (memory.min).",
     kGauge, HR_MEMORY_LIMITS, kUnscaled, field<&hr_record::memory_min>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_memory_events_low_total",
     "Times memory was reclaimed below memory.low: the protection was overcommitted.", kCounter,
     HR_MEMORY_EVENTS, kUnscaled, field<&hr_record::events_low>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_cpu_usage_seconds_total", "CPU time used.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_usage_ns>, "", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_waiting_seconds_total",
     "Time in which some task waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_CPU, HR_PSI_SOME>, "resource=\"cpu\"", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_waiting_seconds_total",
     "Time in which some task waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_MEMORY, HR_PSI_SOME>, "resource=\"memory\"", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_waiting_seconds_total",
     "Time in which some task waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_IO, HR_PSI_SOME>, "resource=\"io\"", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_stalled_seconds_total",
     "Time in which all tasks waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_CPU, HR_PSI_FULL>, "resource=\"cpu\"", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_stalled_seconds_total",
     "Time in which all tasks waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_MEMORY, HR_PSI_FULL>, "resource=\"memory\"", FamilyOf::kNode},
    {"headroom_node_cgroup_pressure_stalled_seconds_total",
     "Time in which all tasks waited for the resource.", kCounter, HR_PSI, kNanoseconds,
     psi<HR_PSI_IO, HR_PSI_FULL>, "resource=\"io\"", FamilyOf::kNode},
    {"headroom_node_cgroup_tasks", "Tasks (pids.current).", kGauge, HR_PIDS, kUnscaled,
     field<&hr_record::pids_current>, "", FamilyOf::kNode},
};

}  // namespace

std::span<const CgroupFamily> cgroup_families() {
  return kFamilies;
}

std::optional<double> CgroupFamily::value(const CgroupMetricInput& row) const {
  if ((row.record.valid & groups) != groups) return std::nullopt;
  const std::uint64_t value = read(row);
  if (value == HR_UNKNOWN) return std::nullopt;
  if (value == HR_NO_LIMIT)
    return is_cadvisor_metric() ? 0 : std::numeric_limits<double>::infinity();
  return static_cast<double>(value) / divisor;
}

}  // namespace headroom::report
