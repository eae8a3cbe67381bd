// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices/slice_reconciler.h"

#include "act/limits/limit_lowering.h"
#include "base/cgroup_directory.h"
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "daemon/config/running_config.h"
#include "daemon/status/node_status_tracker.h"
#include "judge/allocatable/node_allocatable.h"
#include "judge/eviction/threshold/threshold.h"
#include "observe/node/node_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::daemon {
namespace {

using Role = NodeCgroup::Role;

// The last part of a slice's path is the unit's name.
std::string unit_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::optional<double> rate(const SliceReading& before, std::optional<Instant> then,
                           const SliceReading& now, Instant at) {
  if (!before.cpu || !now.cpu || !then || at <= *then || *now.cpu < *before.cpu)
    return std::nullopt;
  const std::chrono::duration<double> used = *now.cpu - *before.cpu;
  return used / std::chrono::duration<double>(at - *then);
}

// Reclaims a little more than necessary, since usage grows until the limit is written.
Bytes below(Bytes limit) {
  return {limit.count - limit.count / 64};
}

std::string as_text(const CgroupValues& values) {
  std::string text;
  for (const CgroupSetting& setting : cgroup_settings(values))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.file, setting.value);
  return text;
}

}  // namespace

SliceReconciler::SliceReconciler(observe::SliceReader reader, CpuSet possible_cpus,
                                 std::unique_ptr<act::LimitLowering> lowering,
                                 std::function<void()> request_check)
    : reader_(std::move(reader)),
      possible_cpus_(std::move(possible_cpus)),
      lowering_(std::move(lowering)),
      request_check_(std::move(request_check)) {}

void SliceReconciler::reconfigure(SliceOptions options) {
  options_ = std::move(options);
  compute_desired();
}

void SliceReconciler::use(act::UnitManager* units, std::string why) {
  units_ = units;
  unavailable_reason_ = std::move(why);
  for (auto& [path, slice] : slices_)
    slice.busy = slice.creating = false;
}

void SliceReconciler::compute_desired() {
  order_.clear();
  last_error_.clear();
  if (options_.mode == SlicesMode::kOff) return;
  const auto node = node_allocatable(options_.capacity, options_.policy, options_.thresholds);
  if (!node) {
    last_error_ = invalid_node_allocatable(node.error());
    return;
  }
  std::vector<const Pod*> active;
  for (const auto& pod : options_.active)
    active.push_back(pod.get());
  for (NodeCgroup& wanted : node_cgroups(options_.policy, options_.capacity, *node, options_.sizing,
                                         qos_tier_sums(active))) {
    order_.push_back(wanted.path);
    Slice& slice = slices_[wanted.path];
    slice.share = share_of(wanted.role, *node);
    slice.wanted = std::move(wanted);
  }
}

Amounts SliceReconciler::share_of(Role role, const NodeAllocatable& node) const {
  switch (role) {
    case Role::kPods:
      return node.pods_limit;
    case Role::kKubeReserved:
      return options_.policy.kube.amounts;
    case Role::kSystemReserved:
      return options_.policy.system.amounts;
    case Role::kBurstable:
    case Role::kBestEffort:
      break;
  }
  return {};
}

std::optional<Instant> SliceReconciler::reconcile(Instant at) {
  std::optional<Instant> due;
  record_lowered(at);
  const bool all_settled = settled(at);
  if (!all_settled) due = settled_at_;
  for (const std::string& path : order_) {
    Slice& slice = slices_.at(path);
    slice.history.settled = all_settled;
    inspect_slice(slice, at);
    if (options_.mode != SlicesMode::kEnforce) continue;
    set_huge_pages(slice);
    start_lowering(slice, at);
    correct_drift(slice, at);
    const bool waits = units_ && !slice.busy && slice.plan.due;
    if (waits && (!due || *slice.plan.due < *due)) due = slice.plan.due;
  }
  return due;
}

// Of all slices, not of one: a slice that is made changes the controllers of those beside it.
bool SliceReconciler::settled(Instant at) {
  const bool open =
      std::ranges::any_of(slices_, [](const auto& slice) { return slice.second.creating; });
  if (std::exchange(created_, false) || open) settled_at_ = at + kSettling;
  return at >= settled_at_;
}

void SliceReconciler::inspect_slice(Slice& slice, Instant at) {
  SliceReading reading = reader_.read(slice.wanted.path, slice.wanted.values);
  slice.cpus = rate(slice.reading, slice.read_at, reading, at);
  slice.reading = std::move(reading);
  slice.read_at = at;
  slice.plan = plan_slice(slice.wanted.values, slice.reading, slice.history, at, step_of(slice));
  slice.history = slice.plan.after;
  count_drift(slice);
  if (!slice.plan.due) slice.error.clear();
  if (!slice.plan.excess_usage) slice.lowering.late = false;
}

// The step by which memory.max of the pods' cgroup follows usage: a quarter of the hard threshold.
// The limit is then at most two steps, half of the threshold, above usage: near enough for pods to
// be evicted, with some room for the other pods. Absent for other slices: nothing is evicted there.
std::optional<Bytes> SliceReconciler::step_of(const Slice& slice) const {
  const auto& wanted = slice.wanted.values.memory_max;
  if (!slice.lowering.late || slice.wanted.role != Role::kPods || !wanted || wanted->is_max())
    return std::nullopt;
  std::optional<Bytes> step;
  for (const Threshold& threshold : options_.thresholds)
    if (threshold.hard() && threshold.signal == Signal::kAllocatableMemoryAvailable)
      step = Bytes{resolve(threshold.value, wanted->most()->count) / 4};
  return step;
}

// Enables the hugetlb controller; its limit files exist at the next check. Pods have limits of
// their own, so in the pods' cgroup and the tiers the controller is also enabled for the children.
void SliceReconciler::set_huge_pages(Slice& slice) {
  const bool limited = slice.reading.values && !slice.wanted.values.hugetlb_max.empty();
  if (!limited || !reader_.has_huge_pages()) return;
  const bool reserve =
      slice.wanted.role == Role::kKubeReserved || slice.wanted.role == Role::kSystemReserved;
  const auto result = act::enable_controller(
      reader_.root(), slice.wanted.path, "hugetlb",
      reserve ? act::ControllerScope::kItself : act::ControllerScope::kChildren);
  const std::string error = result ? "" : result.error().what;
  if (!error.empty() && error != slice.huge_pages_error)
    log::warning("{}: huge pages are not limited: {}", slice.wanted.path, error);
  slice.huge_pages_error = error;
}

void SliceReconciler::start_lowering(Slice& slice, Instant at) {
  const std::string& path = slice.wanted.path;
  slice.lowering.in_progress = lowering_->in_progress(path);
  if (!slice.plan.excess_usage || slice.lowering.in_progress || at < slice.next_lowering_at) return;
  Fd directory = open_read(slice);
  if (!directory) return;
  const Bytes most = *slice.wanted.values.memory_max->most();
  log::info("{}: {} in use, and memory.max is to be {}: taking memory for {} s at the most", path,
            report::human_bytes(slice.plan.excess_usage->count), report::human_bytes(most.count),
            std::chrono::duration_cast<std::chrono::seconds>(kLowering).count());
  lowering_->begin(path, std::move(directory), below(most), kLowering);
  slice.lowering.in_progress = true;
}

void SliceReconciler::record_lowered(Instant at) {
  for (const act::LimitLowering::End& end : lowering_->collect_finished()) {
    Slice& slice = slices_.at(end.name);
    slice.lowering.in_progress = false;
    if (!end.reached) slice.next_lowering_at = at + kLoweringPause;
    ++(end.reached ? slice.lowering.reached : slice.lowering.missed);
    slice.lowering.late = !end.reached;
    if (end.error != 0)
      log::error("{}: take memory: {}", end.name, std::strerror(end.error));
    else if (!end.reached)
      log::warning(
          "{}: memory.max cannot be lowered yet: {} are in use after {} s of taking memory",
          end.name, report::human_bytes(end.in_use.count),
          std::chrono::duration_cast<std::chrono::seconds>(kLowering).count());
  }
}

void SliceReconciler::count_drift(Slice& slice) const {
  for (const std::string& setting : slice.plan.drifted)
    ++slice.drift[setting];
  if (slice.plan.drifted.empty()) return;
  log::warning("{}: another program changed {}{}", slice.wanted.path,
               fmt::join(slice.plan.drifted, ", "),
               options_.mode == SlicesMode::kEnforce ? "; putting it right" : "");
}

void SliceReconciler::correct_drift(Slice& slice, Instant at) {
  if (slice.busy || !slice.plan.due) return;
  if (!units_) {
    slice.error = unavailable_reason_;
    return;
  }
  if (*slice.plan.due > at) return;
  record_attempt(slice.history, at);
  begin(slice);
}

// The properties first, so that the slice is created with them.
void SliceReconciler::begin(Slice& slice) {
  slice.busy = true;
  slice.creating = slice.plan.create;
  const std::string path = slice.wanted.path;
  const std::string unit = unit_of(path);
  const bool start = slice.plan.create && !slice.reading.values;
  log::info("{}: {}{}", path, start ? "make it, with " : "set ", as_text(slice.plan.write));
  write_cgroup_files(slice);
  const act::UnitProperties properties_to_set = properties(slice);
  if (properties_to_set.empty()) return ended(path, {});
  units_->set(unit, properties_to_set, options_.persistence,
              [this, path, unit, start](const Result<>& set) {
                if (!set || !start) return ended(path, set);
                units_->start(unit,
                              [this, path](const Result<>& started) { ended(path, started); });
              });
}

// systemd does not write settings that it does not know, so there is no other writer.
void SliceReconciler::write_cgroup_files(const Slice& slice) const {
  const auto settings = cgroup_settings(act::without_systemd_property(slice.plan.write));
  if (!slice.reading.values || settings.empty()) return;
  const Fd directory = open_read(slice);
  if (!directory) return;
  for (const CgroupSetting& setting : settings)
    if (auto written = write_setting_at(directory.get(), setting.file, setting.value); !written)
      log::error("{}: {}", slice.wanted.path, written.error().what);
}

// Not open: the cgroup was removed since it was read. The next check reads the one at its path.
Fd SliceReconciler::open_read(const Slice& slice) const {
  return open_cgroup(reader_.root().native() + slice.wanted.path, slice.reading.cgroup);
}

act::UnitProperties SliceReconciler::properties(const Slice& slice) const {
  act::UnitProperties all;
  if (slice.plan.create)
    all = act::controller_properties(
        slice.reading.values ? slice.reading.missing_controllers : reader_.controllers(),
        possible_cpus_);
  for (act::UnitProperty& property : act::unit_properties(slice.plan.write)) {
    std::erase_if(all, [&](const act::UnitProperty& other) { return other.name == property.name; });
    all.push_back(std::move(property));
  }
  return all;
}

void SliceReconciler::ended(const std::string& path, const Result<>& result) {
  Slice& slice = slices_.at(path);
  slice.busy = false;
  created_ = std::exchange(slice.creating, false) || created_;
  const std::string error = result ? "" : result.error().what;
  if (!error.empty() && error != slice.error) log::error("{}", error);
  slice.error = error;
  request_check_();
}

report::SlicesView SliceReconciler::view() const {
  report::SlicesView view{.mode = options_.mode, .slices = {}, .error = last_error_};
  if (view.error.empty() && options_.mode == SlicesMode::kEnforce && !units_)
    view.error = unavailable_reason_;
  for (const std::string& path : order_) {
    const Slice& slice = slices_.at(path);
    view.slices.push_back({.role = slice.wanted.role,
                           .path = path,
                           .share = slice.share,
                           .exists = slice.reading.values.has_value(),
                           .missing_controllers = slice.reading.missing_controllers,
                           .desired = slice.wanted.values,
                           .actual = slice.reading.values.value_or(CgroupValues{}),
                           .differs = slice.plan.write,
                           .memory = slice.reading.memory,
                           .tasks = slice.reading.tasks,
                           .cpus = slice.cpus,
                           .excess_usage = slice.plan.excess_usage,
                           .lowering = slice.lowering,
                           .drift = slice.drift,
                           .error = slice.error});
    if (slice.plan.excess_usage)
      view.slices.back().differs.memory_max = slice.wanted.values.memory_max;
  }
  return view;
}

std::vector<std::string> SliceReconciler::paths() const {
  return order_;
}

Amounts capacity_now(const config::Config& config) {
  Observations seen{};
  observe::NodeSource node({.nodefs = filesystems_of(config).nodefs});
  node.read_pids(seen);
  node.read_filesystems(seen);
  Amounts amounts = machine_amounts();
  amounts.memory = node.memory_capacity();
  if (const auto& pids = of(seen, Signal::kPidAvailable)) amounts.pids = Tasks{pids->capacity};
  if (const auto& disk = of(seen, Signal::kNodeFsAvailable))
    amounts.ephemeral_storage = Bytes{disk->capacity};
  return amounts;
}

SlicesMode slices_mode(const config::Config& config) {
  if (config.policy.mode == Mode::kEnforce) return config.slices.mode;
  return std::min(config.slices.mode, SlicesMode::kObserve);
}

SliceOptions slice_options(const config::Config& config, const Amounts& capacity,
                           std::vector<std::shared_ptr<const Pod>> active) {
  return {.mode = slices_mode(config),
          .persistence = config.slices.persistent ? act::Persistence::kPersistent
                                                  : act::Persistence::kUntilReboot,
          .policy = config.reserved,
          .sizing = config.sizing,
          .thresholds = config.policy.thresholds,
          .capacity = capacity,
          .active = std::move(active)};
}

config::Diagnostics reservation_errors(const config::Config& config, const Amounts& capacity) {
  config::Diagnostics diagnostics;
  if (config.slices.mode == SlicesMode::kOff) return diagnostics;
  const auto node = node_allocatable(capacity, config.reserved, config.policy.thresholds);
  if (node) return diagnostics;
  for (const ReservationError& error : node.error())
    diagnostics.push_back({"", 0,
                           "invalid Node Allocatable configuration. " + error.what +
                               " kubeReserved, systemReserved and the hard threshold are counted "
                               "together: reserve less"});
  return diagnostics;
}

}  // namespace headroom::daemon
