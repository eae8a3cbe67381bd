// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices/slice_reconciler.h"

#include "act/limits/cgroup_controller.h"
#include "act/limits/cgroup_setting_writer.h"
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "judge/allocatable/node_allocatable.h"
#include "judge/eviction/threshold/threshold.h"

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

// A little more is taken than must be: what is in use grows on until the limit is written.
Bytes below(Bytes limit) {
  return {limit.count - limit.count / 64};
}

std::string as_text(const CgroupValues& values) {
  std::string text;
  for (const Setting& setting : settings(values))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.file, setting.value);
  return text;
}

}  // namespace

SliceReconciler::SliceReconciler(observe::SliceReader reader, CpuSet possible_cpus,
                                 std::unique_ptr<act::LimitLowering> lowering,
                                 std::function<void()> hasten)
    : reader_(std::move(reader)),
      possible_cpus_(std::move(possible_cpus)),
      lowering_(std::move(lowering)),
      hasten_(std::move(hasten)) {}

void SliceReconciler::adopt(SliceOptions terms) {
  terms_ = std::move(terms);
  compute_desired();
}

void SliceReconciler::use(act::UnitManager* units, std::string why) {
  units_ = units;
  why_not_ = std::move(why);
  for (auto& [path, slice] : kept_)
    slice.busy = false;
}

void SliceReconciler::compute_desired() {
  order_.clear();
  trouble_.clear();
  if (terms_.mode == SlicesMode::kOff) return;
  const auto node = node_allocatable(terms_.capacity, terms_.policy, terms_.thresholds);
  if (!node) {
    trouble_ = invalid_node_allocatable(node.error());
    return;
  }
  std::vector<const Pod*> active;
  for (const auto& pod : terms_.active)
    active.push_back(pod.get());
  for (NodeCgroup& wanted :
       node_cgroups(terms_.policy, terms_.capacity, *node, terms_.sizing, qos_tier_sums(active))) {
    order_.push_back(wanted.path);
    Slice& slice = kept_[wanted.path];
    slice.share = share_of(wanted.role, *node);
    slice.wanted = std::move(wanted);
  }
}

Amounts SliceReconciler::share_of(Role role, const NodeAllocatable& node) const {
  switch (role) {
    case Role::kPods:
      return node.for_pods;
    case Role::kKubeReserved:
      return terms_.policy.kube.amounts;
    case Role::kSystemReserved:
      return terms_.policy.system.amounts;
    case Role::kBurstable:
    case Role::kBestEffort:
      break;
  }
  return {};
}

std::optional<Instant> SliceReconciler::look(Instant at) {
  std::optional<Instant> due;
  record_lowered(at);
  for (const std::string& path : order_) {
    Slice& slice = kept_.at(path);
    inspect_slice(slice, at);
    if (terms_.mode != SlicesMode::kEnforce) continue;
    set_huge_pages(slice);
    lower(slice, at);
    correct_drift(slice, at);
    const bool waits = units_ && !slice.busy && slice.plan.due;
    if (waits && (!due || *slice.plan.due < *due)) due = slice.plan.due;
  }
  return due;
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
  if (!slice.plan.over) slice.lowering.late = false;
}

// Pods that are over go by eviction, which measures the distance to the limit: half its threshold
// is near enough, and leaves those who stay some room. Of the other slices nobody evicts.
std::optional<Bytes> SliceReconciler::step_of(const Slice& slice) const {
  const auto& wanted = slice.wanted.values.memory_max;
  if (!slice.lowering.late || slice.wanted.role != Role::kPods || !wanted || wanted->is_max())
    return std::nullopt;
  std::optional<Bytes> step;
  for (const Threshold& threshold : terms_.thresholds)
    if (threshold.hard() && threshold.signal == Signal::kAllocatableMemoryAvailable)
      step = Bytes{resolve(threshold.value, wanted->most()->count) / 4};
  return step;
}

// The limits are there at the next look. Pods have limits of their own, below the tiers: who has
// the controller himself may yet lack it for them.
void SliceReconciler::set_huge_pages(Slice& slice) {
  const bool limited = slice.reading.values && !slice.wanted.values.hugetlb_max.empty();
  if (!limited || !reader_.has_huge_pages()) return;
  const bool reserve =
      slice.wanted.role == Role::kKubeReserved || slice.wanted.role == Role::kSystemReserved;
  const auto given = act::give_controller(reader_.root(), slice.wanted.path, "hugetlb",
                                          reserve ? act::Reach::kItself : act::Reach::kChildren);
  const std::string error = given ? "" : given.error().what;
  if (!error.empty() && error != slice.no_huge_pages)
    log::warning("{}: huge pages are not limited: {}", slice.wanted.path, error);
  slice.no_huge_pages = error;
}

void SliceReconciler::lower(Slice& slice, Instant at) {
  const std::string& path = slice.wanted.path;
  slice.lowering.under_way = lowering_->under_way(path);
  if (!slice.plan.over || slice.lowering.under_way || at < slice.lower_not_before) return;
  const Bytes most = *slice.wanted.values.memory_max->most();
  log::info("{}: {} in use, and memory.max is to be {}: taking memory for {} s at the most", path,
            report::human_bytes(slice.plan.over->count), report::human_bytes(most.count),
            std::chrono::duration_cast<std::chrono::seconds>(kLowering).count());
  lowering_->begin(path, reader_.root() / path.substr(1), below(most), kLowering);
  slice.lowering.under_way = true;
}

void SliceReconciler::record_lowered(Instant at) {
  for (const act::LimitLowering::End& end : lowering_->take_ended()) {
    Slice& slice = kept_.at(end.name);
    slice.lowering.under_way = false;
    if (!end.reached) slice.lower_not_before = at + kLoweringPause;
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
  for (const std::string& knob : slice.plan.drifted)
    ++slice.drift[knob];
  if (slice.plan.drifted.empty()) return;
  log::warning("{}: somebody else changed {}{}", slice.wanted.path,
               fmt::join(slice.plan.drifted, ", "),
               terms_.mode == SlicesMode::kEnforce ? "; putting it right" : "");
}

void SliceReconciler::correct_drift(Slice& slice, Instant at) {
  if (slice.busy || !slice.plan.due) return;
  if (!units_) {
    slice.error = why_not_;
    return;
  }
  if (*slice.plan.due > at) return;
  record_attempt(slice.history, at);
  begin(slice);
}

// The properties first: a slice is born with them.
void SliceReconciler::begin(Slice& slice) {
  slice.busy = true;
  const std::string path = slice.wanted.path;
  const std::string unit = unit_of(path);
  const bool start = slice.plan.create && !slice.reading.values;
  log::info("{}: {}{}", path, start ? "make it, with " : "set ", as_text(slice.plan.write));
  write_cgroup_files(slice);
  const act::UnitProperties told = properties(slice);
  if (told.empty()) return ended(path, {});
  units_->set(unit, told, terms_.lasting, [this, path, unit, start](const Result<>& set) {
    if (!set || !start) return ended(path, set);
    units_->start(unit, [this, path](const Result<>& started) { ended(path, started); });
  });
}

// What systemd does not know of it does not write, so nobody else does.
void SliceReconciler::write_cgroup_files(const Slice& slice) const {
  if (!slice.reading.values) return;
  for (const Setting& setting : settings(act::without_systemd_property(slice.plan.write)))
    if (auto written =
            act::write_cgroup_setting(reader_.root() / slice.wanted.path.substr(1), setting);
        !written)
      log::error("{}", written.error().what);
}

act::UnitProperties SliceReconciler::properties(const Slice& slice) const {
  act::UnitProperties all;
  if (slice.plan.create)
    all = act::controller_properties(
        slice.reading.values ? slice.reading.lacking : reader_.controllers(), possible_cpus_);
  for (act::UnitProperty& property : act::unit_properties(slice.plan.write)) {
    std::erase_if(all, [&](const act::UnitProperty& other) { return other.name == property.name; });
    all.push_back(std::move(property));
  }
  return all;
}

void SliceReconciler::ended(const std::string& path, const Result<>& result) {
  Slice& slice = kept_.at(path);
  slice.busy = false;
  const std::string error = result ? "" : result.error().what;
  if (!error.empty() && error != slice.error) log::error("{}", error);
  slice.error = error;
  hasten_();
}

report::SlicesView SliceReconciler::view() const {
  report::SlicesView view{.mode = terms_.mode, .slices = {}, .error = trouble_};
  if (view.error.empty() && terms_.mode == SlicesMode::kEnforce && !units_) view.error = why_not_;
  for (const std::string& path : order_) {
    const Slice& slice = kept_.at(path);
    view.slices.push_back({.role = slice.wanted.role,
                           .path = path,
                           .share = slice.share,
                           .exists = slice.reading.values.has_value(),
                           .lacking = slice.reading.lacking,
                           .desired = slice.wanted.values,
                           .actual = slice.reading.values.value_or(CgroupValues{}),
                           .differs = slice.plan.write,
                           .memory = slice.reading.memory,
                           .tasks = slice.reading.tasks,
                           .cpus = slice.cpus,
                           .over = slice.plan.over,
                           .lowering = slice.lowering,
                           .drift = slice.drift,
                           .error = slice.error});
    if (slice.plan.over) view.slices.back().differs.memory_max = slice.wanted.values.memory_max;
  }
  return view;
}

std::vector<std::string> SliceReconciler::paths() const {
  return order_;
}

}  // namespace headroom::daemon
