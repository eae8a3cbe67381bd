// SPDX-License-Identifier: Apache-2.0
#include "observe/host_observer.h"

#include "observe/pod/parts_reader.h"

#include <headroom/id_table.h>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace headroom::observe {
// The newest sample that is a window old; those before it are dropped.
const PressureWindow::Sample* PressureWindow::oldest_needed(Instant at) {
  const auto nth = [&](std::size_t i) -> Sample& {
    return samples_[(first_ + i) % samples_.size()];
  };
  while (count_ > 1 && at - nth(1).at >= window_) {
    first_ = (first_ + 1) % samples_.size();
    --count_;
  }
  return count_ > 0 && at - nth(0).at >= window_ ? &nth(0) : nullptr;
}

std::optional<Observation> PressureWindow::add(Instant at, const hr_stalls* node) {
  if (!node) {
    count_ = 0;
    return std::nullopt;
  }
  const std::uint64_t now = node_wide(*node);
  std::optional<Observation> seen;
  if (const Sample* then = oldest_needed(at)) {
    const double had = seconds_of(at - then->at) * static_cast<double>(cpus_);
    const double lost = std::min(1.0, static_cast<double>(now - then->ns) / 1e9 / had);
    seen = Observation{.available = kWhole - static_cast<std::int64_t>(lost * kWhole),
                       .capacity = kWhole,
                       .at = at};
  }
  const bool due = count_ == 0 || at - samples_[(first_ + count_ - 1) % samples_.size()].at >=
                                      window_ / static_cast<std::int64_t>(kSteps);
  if (due && count_ < samples_.size()) {
    samples_[(first_ + count_) % samples_.size()] = {at, now};
    ++count_;
  }
  return seen;
}

namespace {
constexpr Duration kCpusCountedFor = std::chrono::seconds(10);
}

void FlushPlan::set_limits(const Policy& policy, const Verdict& verdict) {
  const std::chrono::duration<double> filling = kShare * kInterrupted;
  near_ = error_ +
          static_cast<std::int64_t>(filling.count() * static_cast<double>(policy.fastest_fill));
  limits_.clear();
  for (const ThresholdReading& reading : verdict.thresholds)
    if (reading.limit && policy.thresholds[reading.index].signal == Signal::kMemoryAvailable)
      limits_.push_back(*reading.limit);
}

bool FlushPlan::due(const std::optional<Observation>& available, Instant at) const {
  if (!available || at < next_) return false;
  return std::any_of(limits_.begin(), limits_.end(), [&](std::int64_t limit) {
    return std::abs(available->available - limit) <= near_;
  });
}

void StallAttribution::apply(const hr_stalls* node, double growing,
                             std::optional<SwapReading>& reading) {
  if (!reading || !reading->stalled_micros) {
    last_.reset();
    return;
  }
  Totals now{.at = reading->counted_at, .micros = *reading->stalled_micros};
  if (node)
    for (std::size_t cause = 0; cause < HR_STALL_CAUSES; ++cause)
      now.all += node->causes[cause].ns;
  if (node) now.own = node_wide(*node);
  if (!last_ || now.micros < last_->micros) {
    counted_ = now.micros;
    last_ = now;
  } else if (now.at != last_->at) {
    const double all = node ? static_cast<double>(now.all - last_->all) : 0;
    const double share =
        all > 0 ? static_cast<double>(now.own - last_->own) / all * (1 - growing) : 1;
    counted_ += static_cast<std::uint64_t>(std::clamp(share, 0.0, 1.0) *
                                           static_cast<double>(now.micros - last_->micros));
    last_ = now;
  }
  reading->stalled_micros = counted_;
}

void RecordIndex::update(std::span<const hr_record> records) {
  positions_.clear();
  for (std::uint32_t i = 0; i < records.size(); ++i)
    positions_[records[i].id] = i;
}

const hr_record* RecordIndex::find(std::span<const hr_record> records, CgroupId id) const {
  const auto position = positions_.find(id.value);
  if (position == positions_.end()) return nullptr;
  // The order of a pass is the tree's, so a position holds until the set changes; looked for
  // otherwise.
  if (position->second < records.size() && records[position->second].id == id.value)
    return &records[position->second];
  const auto found = std::find_if(records.begin(), records.end(),
                                  [&](const hr_record& record) { return record.id == id.value; });
  return found == records.end() ? nullptr : &*found;
}

void AllocatableReader::set_cgroup(const KnownCgroup* pods) {
  id_ = pods ? std::optional(pods->id) : std::nullopt;
}

void AllocatableReader::read(NodeSource& node, const CgroupInventory& inventory,
                             const RecordIndex& index, std::span<const hr_record> records,
                             Instant at, Observations& all) {
  const hr_record* record = id_ ? index.find(records, *id_) : nullptr;
  node.read_allocatable(record, at, all);
  if (!of(all, Signal::kAllocatableMemoryAvailable)) {
    files_.reset();
  } else if (!files_ || files_->id() != id_->value) {
    auto files = CgroupFiles::open(inventory.find(*id_)->directory.get(), ".");
    if (files) files_ = std::move(*files);
  }
}

void AllocatableReader::read_files(NodeSource& node, Instant at, Observations& all) {
  if (!files_) return;
  constexpr std::uint32_t kGroups = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;
  hr_record record = unknown_record(files_->id(), 0);
  DescriptorBudget budget{CgroupFiles::kFiles};
  std::array<char, 8192> buffer;
  if (files_->read(kGroups, false, buffer, budget, record)) node.read_allocatable(&record, at, all);
}

void UndescribedPods::update(std::span<const PodReading> pods, const CgroupInventory& inventory,
                             const std::string& proc, Instant at, bool cgroups_changed,
                             PodRegistry& registry) {
  if (!cgroups_changed && at - read_at_ < kPeriod) return;
  read_at_ = at;
  protected_.clear();
  for (const PodReading& reading : pods)
    if (reading.description != PodDescription::kComplete) protected_.emplace(reading.cgroup, false);
  if (protected_.empty()) return;
  inventory.each([&](const KnownCgroup& cgroup) {
    const KnownCgroup* pod = &cgroup;
    while (pod && !protected_.contains(pod->id))
      pod = inventory.find(pod->parent);
    if (!pod) return;
    bool& is_protected = protected_.at(pod->id);
    is_protected = is_protected || has_protected_process(cgroup, proc);
  });
  for (const auto& [id, is_protected] : protected_)
    registry.show_protected(id, is_protected);
}

HostObserver::HostObserver(Parts parts)
    : parts_(std::move(parts)),
      registry_(PodCgroupParser(parts_.pods_cgroup)),
      parts_reader_(parts_.container_at),
      pressure_(parts_.pressure_window, parts_.cpus),
      flush_plan_(parts_.cpus, parts_.page_size),
      filesystems_(std::make_unique<FilesystemReader>(parts_.node.filesystem_read())) {}

// CPUs come and go while the machine runs.
void HostObserver::count_cpus() {
  const Instant at = parts_.clock();
  if (!parts_.online_cpus || at - cpus_counted_at_ < kCpusCountedFor) return;
  cpus_counted_at_ = at;
  const std::int64_t cpus = parts_.online_cpus();
  if (cpus < 1 || cpus == parts_.cpus) return;
  parts_.cpus = cpus;
  pressure_.set_cpus(cpus);
  flush_plan_.set_cpus(cpus);
}

Snapshot HostObserver::take_snapshot(SnapshotScope depth) {
  if (depth == SnapshotScope::kCgroups) count_cpus();
  Snapshot snapshot;
  parts_.cgroups->set_compare_usage(depth == SnapshotScope::kDecision);
  parts_.cgroups->set_urgent(depth == SnapshotScope::kDecision);
  if (depth == SnapshotScope::kDecision) flush_near_limit();  // another sweep flushes by itself
  if (depth == SnapshotScope::kNode)
    read_memory();
  else
    sweep_cgroups(snapshot);
  // A victim may be gone since the last reading: what it gave back must be in the one that decides.
  parts_.node.read_swap(observations_, depth == SnapshotScope::kDecision);
  parts_.node.read_pids(observations_);
  if (depth == SnapshotScope::kNode)
    allocatable_.read_files(parts_.node, parts_.clock(), observations_);
  if (parts_.waits) snapshot.waits = parts_.waits->read(depth);
  if (snapshot.cgroups) read_parts(snapshot);
  if (snapshot.cgroups && parts_.cpu_waits)
    parts_.cpu_waits->update(depth, parts_.clock(), parts_.inventory, snapshot,
                             of(observations_, Signal::kCpuPressure));
  of(observations_, Signal::kMemoryPressure) =
      pressure_.add(parts_.clock(), snapshot.waits.node_stalls);
  snapshot.observations = observations_;
  snapshot.swap = parts_.node.swap();
  if (snapshot.swap) update_growing_waiters(snapshot);
  stall_attribution_.apply(snapshot.waits.node_stalls, growing_waiters_.share(), snapshot.swap);
  snapshot.unaccounted_memory = parts_.node.unaccounted();
  snapshot.images = parts_.images;
  // The instant it is all known: no sample is younger than the decision it leads to.
  snapshot.at = parts_.clock();
  return snapshot;
}

// Only a sweep has what they are of. While waits are lost, it is unknown which cgroups waited.
void HostObserver::update_growing_waiters(Snapshot& snapshot) {
  const auto& stalls = snapshot.waits.stalls;
  const std::uint64_t lost_before = stalls_lost_;
  if (stalls) stalls_lost_ = stalls->lost;
  if (snapshot.cgroups && (!stalls || stalls_lost_ != lost_before)) {
    growing_waiters_ = {};
    stalled_pods_ = {};
  } else if (snapshot.cgroups) {
    const Instant at = parts_.clock();
    if (growing_waiters_.update(at, *stalls,
                                [&](CgroupId id) { return index_.find(*snapshot.cgroups, id); }))
      stalled_pods_.update(at, growing_waiters_, snapshot.pods,
                           [&](CgroupId id) { return pod_cgroup_of(id); });
  }
  if (stalled_pods_.at() == Instant{}) return;
  snapshot.swap->pods_stalled_micros = stalled_pods_.micros();
  snapshot.swap->pods_counted_at = stalled_pods_.at();
}

// Where the last reading was near a limit, one after a flush is all that is read.
void HostObserver::read_memory() {
  if (read_flushed_memory()) return;
  read_memory(nullptr, {});
  read_flushed_memory();
}

void HostObserver::read_memory(const hr_record* root, Instant sampled) {
  parts_.node.read_memory(observations_, root, sampled);
  auto& memory = of(observations_, Signal::kMemoryAvailable);
  if (!memory)
    ++missing_readings_;
  else if (!parts_.cgroups->flushes_memory())
    memory->error = flush_plan_.error();
}

// False: as flush_near_limit(). The observations are as before then.
bool HostObserver::read_flushed_memory() {
  if (!flush_near_limit()) return false;
  read_memory(parts_.cgroups->flushed_root(), parts_.clock());
  return true;
}

// False: memory is not near a limit, or a flush is not due or not possible.
bool HostObserver::flush_near_limit() {
  if (!flush_plan_.due(of(observations_, Signal::kMemoryAvailable), parts_.clock())) return false;
  const Instant began = parts_.clock();
  const bool flushed = parts_.cgroups->flush_memory();
  flush_plan_.record(began, parts_.clock());
  if (!flushed) return false;
  ++flushes_;
  return true;
}

std::optional<CgroupId> HostObserver::pod_cgroup_of(CgroupId id) const {
  const KnownCgroup* cgroup = parts_.inventory.find(id);
  while (cgroup) {
    if (registry_.find(cgroup->id)) return cgroup->id;
    if (cgroup->parent.value == 0) break;
    cgroup = parts_.inventory.find(cgroup->parent);
  }
  return std::nullopt;
}

std::shared_ptr<const Pod> HostObserver::pod_of(CgroupId id) const {
  const auto cgroup = pod_cgroup_of(id);
  return cgroup ? registry_.find(*cgroup) : nullptr;
}

void HostObserver::sweep_cgroups(Snapshot& snapshot) {
  const Instant at = parts_.clock();
  if (!filesystems_->take(observations_)) ++missing_readings_;
  ++passes_;
  const auto swept = parts_.cgroups->sweep();
  if (!swept) {
    ++missing_readings_;
    error_ = swept.error().what;
    return read_memory();
  }
  error_.clear();
  const std::span<const hr_record> records = *swept;
  const bool same = parts_.cgroups->same_cgroups();
  if (!same) {
    index_.count_new_order();
    snapshot.cgroups_changed = parts_.inventory.update(records);
    if (snapshot.cgroups_changed) update_registry(records);
  }
  const CgroupSource::ChangeStamps change_stamps = parts_.cgroups->change_stamps();
  snapshot.changes = {.change_stamps = change_stamps.of_records,
                      .pass = change_stamps.pass,
                      .order = index_.order()};
  if (!same) find_top_level(records);
  parts_.node.use_top_level(records, top_level_);
  // Of the same pass as the pods' usage.
  const bool has_root = !records.empty() && records.front().parent_id == 0;
  const hr_record* root = has_root ? &records.front() : nullptr;
  read_memory(root, at);
  if (root && (root->valid & HR_MEMORY_STAT) && root->pagetables != HR_UNKNOWN)
    snapshot.page_tables = Bytes{static_cast<std::int64_t>(root->pagetables)};
  allocatable_.read(parts_.node, parts_.inventory, index_, records, at, observations_);
  snapshot.cgroups = records;
  if (parts_.disks)
    for (auto& measured : parts_.disks->take())
      registry_.measured(measured.cgroup, std::move(measured.usage));
  snapshot.pods = read_pods(records, snapshot.changes, same);
  undescribed_pods_.update(snapshot.pods, parts_.inventory, parts_.proc, at,
                           snapshot.cgroups_changed, registry_);
  if (parts_.disks && disk_targets_stale_) set_disk_targets(snapshot.pods);
}

void HostObserver::find_top_level(std::span<const hr_record> records) {
  top_level_.clear();
  if (records.empty() || records.front().parent_id != 0) return;
  for (std::uint32_t i = 1; i < records.size(); ++i)
    if (records[i].parent_id == records.front().id) top_level_.push_back(i);
}

std::span<const PodReading> HostObserver::read_pods(std::span<const hr_record> records,
                                                    const SweepChanges& changes, bool same) {
  if (!same || changes.change_stamps.empty())
    return registry_.read([&](CgroupId id) { return index_.find(records, id); });
  return registry_.read_again([&](const hr_record* record) {
    return changes.change_stamps[static_cast<std::size_t>(record - records.data())].pass ==
           changes.pass;
  });
}

void HostObserver::read_parts(Snapshot& snapshot) {
  if (std::exchange(parts_stale_, false))
    parts_reader_.set_targets(snapshot.pods, parts_.inventory, registry_);
  parts_reader_.read(
      parts_.clock(), [&](CgroupId id) { return index_.find(*snapshot.cgroups, id); },
      snapshot.waits);
}

void HostObserver::set_disk_targets(std::span<const PodReading> pods) {
  disk_targets_stale_ = false;
  std::vector<DiskTarget> targets;
  targets.reserve(pods.size());
  IdTable rows(pods.size());
  for (const PodReading& reading : pods) {
    rows.put(reading.cgroup.value, targets.size());
    targets.push_back({.pod = reading.pod, .cgroup = reading.cgroup, .containers = {}});
  }
  parts_.inventory.each([&](const KnownCgroup& cgroup) {
    if (const auto row = rows.find(cgroup.parent.value))
      targets[*row].containers.push_back(parts_.cgroup_root + cgroup.path);
  });
  parts_.disks->set_targets(std::move(targets));
}

void HostObserver::measure_disks() {
  if (parts_.disks) parts_.disks->measure_urgently();
}

// Only when the set of cgroups changed.
void HostObserver::update_registry(std::span<const hr_record> records) {
  std::vector<CgroupId> known;
  known.reserve(parts_.inventory.size());
  parts_.inventory.each([&](const KnownCgroup& cgroup) { known.push_back(cgroup.id); });
  std::sort(known.begin(), known.end());

  std::vector<CgroupId> changed;
  std::set_difference(registered_.begin(), registered_.end(), known.begin(), known.end(),
                      std::back_inserter(changed));
  for (const CgroupId id : changed)
    registry_.gone(id);
  changed.clear();
  std::set_difference(known.begin(), known.end(), registered_.begin(), registered_.end(),
                      std::back_inserter(changed));
  for (const CgroupId id : changed)
    registry_.add_cgroup(id, parts_.inventory.find(id)->path);
  registered_ = std::move(known);
  disk_targets_stale_ = parts_stale_ = true;

  allocatable_.set_cgroup(parts_.inventory.find("/" + parts_.pods_cgroup));
  index_.update(records);
}

}  // namespace headroom::observe
