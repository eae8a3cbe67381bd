// SPDX-License-Identifier: Apache-2.0
// container_*: cAdvisor's series from the sweep's records.
#include "report/family.h"
#include "report/identity.h"
#include "report/metrics.h"

#include <array>
#include <string>

namespace headroom::report {
namespace {

using prometheus::MetricType;

std::uint64_t working_set_or_unknown(const hr_record& record) {
  const auto bytes = working_set(record);
  return bytes ? static_cast<std::uint64_t>(bytes->count) : HR_UNKNOWN;
}

template <hr_u64 hr_record::*Field>
std::uint64_t field(const hr_record& record) {
  return record.*Field;
}
template <hr_psi_resource Resource, hr_psi_kind Kind>
std::uint64_t psi(const hr_record& record) {
  return record.psi_ns[Resource][Kind];
}

struct Series {
  std::string_view name;
  std::string_view help;
  MetricType type;
  hr_u32 groups;  // all of these must be valid
  double per;     // units of the record in one of the metric's
  std::uint64_t (*read)(const hr_record&);
};

constexpr double kAsIs = 1;
constexpr double kNanoseconds = 1e9;
constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;

constexpr Series kSeries[] = {
    {"container_memory_usage_bytes", "Memory in use, page cache included (memory.current).", kGauge,
     HR_MEMORY_USAGE, kAsIs, field<&hr_record::memory_usage>},
    {"container_memory_working_set_bytes",
     "Memory in use less inactive file pages: what evictions are decided by.", kGauge,
     HR_MEMORY_USAGE | HR_MEMORY_STAT, kAsIs, working_set_or_unknown},
    {"container_memory_rss", "Anonymous memory in bytes (memory.stat anon).", kGauge,
     HR_MEMORY_STAT, kAsIs, field<&hr_record::anon>},
    {"container_memory_cache", "Page cache in bytes, tmpfs included (memory.stat file).", kGauge,
     HR_MEMORY_STAT, kAsIs, field<&hr_record::file>},
    {"container_memory_swap", "Swap in use in bytes (memory.swap.current).", kGauge,
     HR_MEMORY_USAGE, kAsIs, field<&hr_record::swap_usage>},
    {"container_spec_memory_limit_bytes", "Memory limit (memory.max); 0 is no limit.", kGauge,
     HR_MEMORY_LIMITS, kAsIs, field<&hr_record::memory_max>},
    {"container_memory_events_high_total",
     "Times memory.high was exceeded and the cgroup throttled into reclaim.", kCounter,
     HR_MEMORY_EVENTS, kAsIs, field<&hr_record::events_high>},
    {"container_memory_events_max_total", "Times memory.max was about to be exceeded.", kCounter,
     HR_MEMORY_EVENTS, kAsIs, field<&hr_record::events_max>},
    {"container_oom_events_total", "Processes killed by the kernel's OOM killer.", kCounter,
     HR_MEMORY_EVENTS, kAsIs, field<&hr_record::events_oom_kill>},
    {"container_cpu_usage_seconds_total", "CPU time used.", kCounter, HR_CPU, kNanoseconds,
     field<&hr_record::cpu_usage_ns>},
    {"container_cpu_user_seconds_total", "CPU time used in user mode.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_user_ns>},
    {"container_cpu_system_seconds_total", "CPU time used in the kernel.", kCounter, HR_CPU,
     kNanoseconds, field<&hr_record::cpu_system_ns>},
    {"container_cpu_cfs_periods_total", "CPU quota periods that passed.", kCounter, HR_THROTTLE,
     kAsIs, field<&hr_record::nr_periods>},
    {"container_cpu_cfs_throttled_periods_total", "CPU quota periods in which it was throttled.",
     kCounter, HR_THROTTLE, kAsIs, field<&hr_record::nr_throttled>},
    {"container_cpu_cfs_throttled_seconds_total", "Time it was throttled by its CPU quota.",
     kCounter, HR_THROTTLE, kNanoseconds, field<&hr_record::throttled_ns>},
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
    {"container_threads", "Tasks (pids.current).", kGauge, HR_PIDS, kAsIs,
     field<&hr_record::pids_current>},
};

std::optional<double> value_of(const Series& series, const hr_record& record) {
  if ((record.valid & series.groups) != series.groups) return std::nullopt;
  const std::uint64_t value = series.read(record);
  if (value == HR_UNKNOWN) return std::nullopt;
  if (value == HR_NO_LIMIT) return 0;  // cAdvisor writes "no limit" so
  return static_cast<double>(value) / series.per;
}

// cAdvisor's labels, in Prometheus' order; what is not known is "", as cAdvisor has it.
Labels labels_of(const CgroupTable& table, std::size_t i, const PodIndex& index) {
  const std::string_view path = table.path(i);
  const PodRow* row = index.pod_of(table.records[i]);
  const Container* container = row ? container_named(*row->pod, path) : nullptr;
  return labels({{"container", container ? std::string_view(container->name) : ""},
                 {"id", path},
                 {"image", ""},
                 {"name", row ? runtime_id(path) : ""},
                 {"namespace", row ? std::string_view(row->pod->pod_namespace) : ""},
                 {"pod", row ? std::string_view(row->pod->name) : ""}});
}

// Two series with the same labels spoil a whole scrape, so a cgroup without a name has none.
std::vector<Labels> all_labels(const CgroupTable& table) {
  const PodIndex index(table);
  std::vector<Labels> all(table.records.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!table.path(i).empty()) all[i] = labels_of(table, i, index);
  return all;
}

Labels with_cpu(Labels labels) {
  labels.insert(labels.begin() + 1, {"cpu", "total"});
  return labels;
}

}  // namespace

void add_container_families(const CgroupTable& table, Families& families) {
  const std::vector<Labels> all = all_labels(table);
  for (const Series& series : kSeries) {
    Family family = series.type == kGauge ? Family::gauge(series.name, series.help)
                                          : Family::counter(series.name, series.help);
    // cAdvisor labels this one by CPU, and headroom has no per-CPU series.
    const bool by_cpu = series.name == "container_cpu_usage_seconds_total";
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto value = value_of(series, table.records[i]);
      if (value && !all[i].empty()) family.add(*value, by_cpu ? with_cpu(all[i]) : all[i]);
    }
    family.into(families);
  }
}

}  // namespace headroom::report
