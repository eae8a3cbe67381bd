// SPDX-License-Identifier: Apache-2.0
// headroom_*: the node, its thresholds and the daemon itself.
#include "base/human_readable.h"
#include "base/process_stat.h"
#include "judge/admission/taints.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/view/node_status.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace headroom::report {
namespace {

std::optional<double> seconds_if_known(const std::optional<Duration>& duration) {
  return duration ? std::optional(seconds_of(*duration)) : std::nullopt;
}

// One unit a family: Prometheus' naming conventions.
enum Unit : std::size_t { kBytes, kInodes, kTasks, kRatio, kUnits };
constexpr std::array<std::string_view, kUnits> kUnitSuffixes{"_bytes", "_inodes", "_tasks",
                                                             "_ratio"};

Unit unit_of(Signal signal) {
  switch (signal) {
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
      return kInodes;
    case Signal::kPidAvailable:
      return kTasks;
    case Signal::kMemoryPressure:
    case Signal::kCpuPressure:
      return kRatio;
    case Signal::kMemoryAvailable:
    case Signal::kAllocatableMemoryAvailable:
    case Signal::kNodeFsAvailable:
    case Signal::kImageFsAvailable:
    case Signal::kContainerFsAvailable:
    case Signal::kSwapAvailable:
    case Signal::kKernelMemAvailable:
      return kBytes;
  }
  return kBytes;
}

// A share of the time is observed in millionths.
double in_unit(Signal signal, std::int64_t amount) {
  return static_cast<double>(amount) / (unit_of(signal) == kRatio ? 1e6 : 1);
}

// A gauge for each unit, with the unit in its name.
class UnitGauges {
 public:
  UnitGauges(const std::string& name, const std::string& help) {
    for (const std::string_view suffix : kUnitSuffixes)
      gauges_.push_back(MetricFamilyBuilder::gauge(name + std::string(suffix), help));
  }
  void add(Signal signal, std::int64_t amount, std::initializer_list<Label> pairs) {
    gauges_[unit_of(signal)].add(in_unit(signal, amount), labels(pairs));
  }
  void append_to(Families& families) {
    for (MetricFamilyBuilder& gauge : gauges_)
      gauge.append_to(families);
  }

 private:
  std::vector<MetricFamilyBuilder> gauges_;
};

void add_signals(const NodeView& node, Families& families) {
  UnitGauges available("headroom_signal_available", "Available amount of the eviction signal.");
  UnitGauges capacity("headroom_signal_capacity", "Capacity of the eviction signal.");
  for (std::size_t i = 0; i < kSignals; ++i) {
    if (!node.observations[i]) continue;
    const auto signal = static_cast<Signal>(i);
    available.add(signal, node.observations[i]->available, {{"signal", kSignalNames[i]}});
    capacity.add(signal, node.observations[i]->capacity, {{"signal", kSignalNames[i]}});
  }
  available.append_to(families);
  capacity.append_to(families);
}

// What no pod's own limit explains.
void add_contention(const NodeView& node, Families& families) {
  auto contention = MetricFamilyBuilder::gauge(
      "headroom_node_contention_ratio",
      "Share of the latest time window that pods lost because the node is short of the resource.");
  for (const Signal signal : {Signal::kCpuPressure, Signal::kMemoryPressure})
    if (const auto& seen = of(node.observations, signal))
      contention.add(1 - in_unit(signal, seen->available), {{"resource", resource_of(signal)}});
  contention.append_to(families);
}

void add_thresholds(const NodeView& node, Families& families) {
  UnitGauges limit("headroom_threshold",
                   "Eviction threshold: crossed while the signal is below this value.");
  auto crossed = MetricFamilyBuilder::gauge("headroom_threshold_crossed",
                                            "1 if the signal is below the threshold.");
  auto met = MetricFamilyBuilder::gauge(
      "headroom_threshold_met",
      "1 if the signal has been below the threshold for the whole grace period.");
  auto forecast = MetricFamilyBuilder::gauge(
      "headroom_threshold_forecast_seconds",
      "Predicted time until the signal crosses the threshold. No sample if it is not falling.");
  for (const ThresholdView& threshold : node.thresholds) {
    const std::string_view signal = name(threshold.signal), kind = kind_name(threshold.hard());
    if (threshold.limit)
      limit.add(threshold.signal, *threshold.limit,
                {{"grace", human(threshold.grace)}, {"kind", kind}, {"signal", signal}});
    forecast.add(seconds_if_known(threshold.time_to), {{"kind", kind}, {"signal", signal}});
    if (!threshold.available) continue;  // unknown is neither below nor above
    crossed.add(threshold.below_since ? 1.0 : 0.0, {{"kind", kind}, {"signal", signal}});
    met.add(threshold.met ? 1.0 : 0.0, {{"kind", kind}, {"signal", signal}});
  }
  limit.append_to(families);
  for (MetricFamilyBuilder* family : {&crossed, &met, &forecast})
    family->append_to(families);
}

// No family on a node without swap, unless it is watched for thrashing.
void add_swap(const NodeView& node, Families& families) {
  if (!node.swap_room) return;
  const SwapRoom& room = *node.swap_room;
  const auto bytes = [](std::int64_t count) { return static_cast<double>(count); };
  const auto gauge = [&](const char* name, const char* help, double value) {
    MetricFamilyBuilder::gauge(name, help).add(value).append_to(families);
  };
  gauge("headroom_memory_room_bytes", "memory.available with what swap gains and costs counted in.",
        bytes(room.available));
  auto part = MetricFamilyBuilder::gauge("headroom_memory_room_part_bytes",
                                         "What headroom_memory_room_bytes is made of.");
  part.add(bytes(room.filling), {{"part", "filling"}});
  part.add(bytes(room.kubelet), {{"part", "kubelet"}});
  part.add(bytes(room.memory), {{"part", "memory"}});
  part.add(bytes(room.gain), {{"part", "swap"}});
  part.append_to(families);
  auto bound = MetricFamilyBuilder::gauge("headroom_memory_room_bound",
                                          "1 for what headroom_memory_room_bytes follows.");
  for (const std::string_view name : SwapRoom::kBoundNames)
    bound.add(name == room.bound_name() ? 1.0 : 0.0, {{"bound", name}});
  bound.append_to(families);
  gauge("headroom_swap_aware",
        "1 if thresholds of memory.available are compared with headroom_memory_room_bytes.",
        room.in_force ? 1 : 0);
  gauge("headroom_swap_fill_bytes_per_second", "Rate at which swap fills; negative: it empties.",
        room.fill_rate);
  gauge("headroom_memory_stalled_ratio",
        "Share of the last seconds in which all tasks waited for memory.", room.stalled);
  gauge("headroom_memory_pods_stalled_ratio",
        "Longest share of the last seconds that a pod within its memory request waited for memory.",
        room.pods_stalled);
  gauge("headroom_memory_refaults_per_second", "Pages read back that reclaim had taken.",
        room.refault_rate);
  gauge("headroom_memory_reclaimed_pages_per_second", "Pages that the node's own reclaim freed.",
        room.reclaim_rate);
  auto location = MetricFamilyBuilder::gauge("headroom_memory_location_bytes",
                                             "Anonymous and shared memory, by where it is.");
  location.add(bytes(room.compressed), {{"location", "compressed"}});
  location.add(bytes(room.on_disk), {{"location", "disk"}});
  location.add(bytes(room.resident), {{"location", "resident"}});
  location.append_to(families);
  gauge("headroom_memory_cold_bytes",
        "Of the resident memory: what the kernel would swap out first (Inactive(anon)).",
        bytes(room.cold));
  gauge("headroom_memory_compressed_size_bytes", "Memory that the compressed pages take.",
        bytes(room.compressed_size));
  gauge("headroom_memory_incompressible_bytes", "Pages in zram that could not be compressed.",
        bytes(room.incompressible));
}

void add_unaccounted_memory(const NodeView& node, Families& families) {
  if (!node.unaccounted_memory) return;
  MetricFamilyBuilder::gauge("headroom_node_unaccounted_bytes",
                             "Memory in use that is in neither anon nor file of the root cgroup.")
      .add(static_cast<double>(node.unaccounted_memory->count))
      .append_to(families);
}

void add_node_state(const NodeView& node, Families& families) {
  auto condition =
      MetricFamilyBuilder::gauge("headroom_condition", "1 if the node condition holds.");
  for (std::size_t i = 0; i < kConditions; ++i)
    condition.add(node.conditions[i] ? 1.0 : 0.0, {{"condition", kConditionNames[i]}});
  condition.append_to(families);
  auto mode = MetricFamilyBuilder::gauge("headroom_mode", "1 for the active mode.");
  mode.add(node.mode == Mode::kObserve ? 1.0 : 0.0, {{"mode", "observe"}});
  mode.add(node.mode == Mode::kEnforce ? 1.0 : 0.0, {{"mode", "enforce"}});
  mode.append_to(families);
  MetricFamilyBuilder::gauge("headroom_victims", "Pods that are being evicted.")
      .add(std::uint64_t{node.victims.size()})
      .append_to(families);
}

void add_sources(const NodeView& node, Families& families) {
  auto source = MetricFamilyBuilder::gauge("headroom_source",
                                           "1 for the source of each group of cgroup readings.");
  for (std::size_t i = 0; i < kGroupNames.size(); ++i)
    if (!node.sources[i].empty())
      source.add(1.0, {{"group", kGroupNames[i]}, {"source", node.sources[i]}});
  source.append_to(families);
}

void add_sweeps(const NodeView& node, Instant now, Families& families) {
  MetricFamilyBuilder::gauge("headroom_cgroups_tracked", "Cgroups found by the last sweep.")
      .add(node.cgroups)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_cgroups_unresolved",
                             "Cgroups of the last sweep without an open directory: removed since, "
                             "or no file descriptor left.")
      .add(node.counters.cgroups_unresolved)
      .append_to(families);
  if (node.swept_at)
    MetricFamilyBuilder::gauge("headroom_sweep_age_seconds",
                               "Age of the cgroup readings in this response.")
        .add(seconds_of(now - *node.swept_at))
        .append_to(families);
  MetricFamilyBuilder::gauge("headroom_sweep_period_seconds",
                             "Time between the latest sweep of all cgroups and the next.")
      .add(seconds_of(node.process_usage.last_turn.sweep_period))
      .append_to(families);
  MetricFamilyBuilder::histogram("headroom_sweep_duration_seconds",
                                 "Duration of a sweep of all cgroups.")
      .add(node.counters.sweep)
      .append_to(families);
}

void add_wakeups(const NodeView& node, Families& families) {
  auto wakeups = MetricFamilyBuilder::counter("headroom_wakeups_total",
                                              "Turns of the main loop, by wake-up source.");
  for (std::size_t i = 0; i < kWakeSources; ++i)
    wakeups.add(node.counters.wakeups[i], {{"source", kWakeSourceNames[i]}});
  wakeups.append_to(families);
  auto checks = MetricFamilyBuilder::counter(
      "headroom_snapshots_total", "Snapshots taken, of the node only or of every cgroup as well.");
  for (std::size_t i = 0; i < kSnapshotScopes; ++i)
    checks.add(node.counters.checks[i], {{"scope", kSnapshotScopeNames[i]}});
  checks.append_to(families);
}

void add_lost_counters(const Counters& counters, Families& families) {
  MetricFamilyBuilder::counter(
      "headroom_bpf_self_checks_total",
      "Comparisons of BPF readings with cgroup files. headroom_source shows the result.")
      .add(counters.self_checks)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_missing_readings_total",
                               "Failed readings. They count as unknown.")
      .add(counters.missing_readings)
      .append_to(families);
  MetricFamilyBuilder::counter("headroom_dropped_total", "Items that were dropped, by component.")
      .add(counters.audit_lost, {{"component", "audit"}})
      .add(counters.cgroups_lost, {{"component", "cgroups"}})
      .add(counters.dbus_signals_lost, {{"component", "dbus"}})
      .add(counters.evictions_overwritten, {{"component", "evictions"}})
      .add(counters.log_lost, {{"component", "log"}})
      .add(counters.flight_recordings_lost, {{"component", "flight_recorder"}})
      .add(counters.publications_skipped, {{"component", "published_view"}})
      .add(counters.recording_lost, {{"component", "recording"}})
      .add(counters.reports_failed, {{"component", "report"}})
      .append_to(families);
}

void add_process_usage(const ProcessUsage& process_usage, Families& families) {
  MetricFamilyBuilder::gauge("process_resident_memory_bytes", "Resident memory size in bytes.")
      .add(process_usage.resident)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_turn_allocations",
                             "Heap allocations in the latest turn of the main loop.")
      .add(process_usage.last_turn.allocations)
      .append_to(families);
  MetricFamilyBuilder::gauge(
      "headroom_kill_path_allocations",
      "Heap allocations between decision and signal in the latest turn that sent a signal.")
      .add(process_usage.kill_path_allocations)
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_build_info", "1. The version is in the label.")
      .add(1.0, {{"version", HEADROOM_VERSION}})
      .append_to(families);
}

std::string_view unit_of(std::string_view resource) {
  if (resource == "cpu") return "core";
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return bytes ? "byte" : "integer";
}

double amount_of(std::string_view resource, const Quantity& quantity) {
  if (resource == "cpu") return static_cast<double>(quantity.milli_value()) / 1000;
  return static_cast<double>(quantity.value());
}

void add_resources(std::string_view name, std::string_view help, const ResourceList& list,
                   Families& families) {
  auto family = MetricFamilyBuilder::gauge(name, help);
  for (const auto& [resource, quantity] : list)
    family.add(amount_of(resource, quantity),
               {{"resource", resource}, {"unit", unit_of(resource)}});
  family.append_to(families);
}

}  // namespace

void add_node_families(const NodeView& node, Instant now, Families& families) {
  add_signals(node, families);
  add_contention(node, families);
  add_thresholds(node, families);
  add_swap(node, families);
  add_unaccounted_memory(node, families);
  add_node_state(node, families);
  add_sources(node, families);
  add_sweeps(node, now, families);
  add_wakeups(node, families);
  add_lost_counters(node.counters, families);
  add_process_usage(node.process_usage, families);
}

void add_process_families(Families& families) {
  auto threads = MetricFamilyBuilder::counter(
      "headroom_thread_cpu_seconds_total",
      "CPU time used by headroomd, by thread. CPU time of its BPF programs is not included.");
  double all = 0;
  for (const ThreadCpuTime& each : cpu_time_by_thread()) {
    const double used = seconds_of(each.cpu);
    all += used;
    threads.add(used, {{"thread", each.part}});
  }
  threads.append_to(families);
  if (all > 0)
    MetricFamilyBuilder::counter("process_cpu_seconds_total",
                                 "Total user and system CPU time spent in seconds.")
        .add(all)
        .append_to(families);
}

void add_machine_families(const NodeView& node, Families& families) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (cores > 0)
    MetricFamilyBuilder::gauge("machine_cpu_cores", "Online CPUs.")
        .add(static_cast<double>(cores))
        .append_to(families);
  if (const auto& memory = of(node.observations, Signal::kMemoryAvailable))
    MetricFamilyBuilder::gauge("machine_memory_bytes", "Memory of the machine.")
        .add(static_cast<double>(memory->capacity))
        .append_to(families);
  if (const auto& swap = of(node.observations, Signal::kSwapAvailable))
    MetricFamilyBuilder::gauge("machine_swap_bytes", "Swap space of the machine.")
        .add(static_cast<double>(swap->capacity))
        .append_to(families);
}

void add_node_name(std::string_view node_name, Families& families) {
  if (!node_name.empty())
    MetricFamilyBuilder::gauge("kubelet_node_name", "1. The node's name is in the label.")
        .add(1.0, {{"node", node_name}})
        .append_to(families);
}

void add_status_families(const NodeStatus& status, Families& families) {
  auto condition =
      MetricFamilyBuilder::gauge("headroom_node_condition", "1: the status of the condition.");
  for (std::size_t i = 0; i < kConditions; ++i) {
    const bool holds = status.conditions[i].holds;
    condition.add(holds ? 1.0 : 0.0, {{"condition", kConditionNames[i]}, {"status", "true"}});
    condition.add(holds ? 0.0 : 1.0, {{"condition", kConditionNames[i]}, {"status", "false"}});
  }
  condition.append_to(families);
  auto taint = MetricFamilyBuilder::gauge("headroom_node_taint", "1: the node bears the taint.");
  for (const Taint& each : all_taints(status.state))
    taint.add(1.0, {{"effect", name(each.effect)}, {"key", each.key}, {"value", each.value}});
  taint.append_to(families);
  add_resources("headroom_node_capacity", "What the node has.", status.capacity, families);
  add_resources("headroom_node_allocatable", "What of it pods may have.", status.allocatable,
                families);
  add_resources("headroom_node_reserved", "What of it is kept from pods.", status.reserved,
                families);
  add_resources("headroom_node_requested", "What active pods were promised.", status.requested,
                families);
  add_resources("headroom_node_limits", "What they may use at the most, as far as limited.",
                status.limits, families);
}

}  // namespace headroom::report
