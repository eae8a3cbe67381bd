// SPDX-License-Identifier: Apache-2.0
#include "observe/host_observer.h"

#include "base/id_table.h"
#include "observe/oom_score_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace headroom::observe {
namespace {

// statvfs() costs little but may wait, and a disk does not fill in milliseconds.
constexpr Duration kFilesystemPeriod = std::chrono::seconds(1);
// A kubelet describes a pod within a moment; one that does not answer costs a look now and then.
constexpr Duration kScorePeriod = std::chrono::seconds(5);
constexpr std::uint32_t kAllocatableGroups = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_MEMORY_LIMITS;

}  // namespace

HostObserver::HostObserver(Parts parts)
    : parts_(std::move(parts)),
      registry_(PodLayout(parts_.pods_cgroup)),
      parts_reader_(parts_.container_at),
      pressure_(parts_.pressure_window, parts_.cpus) {}

Snapshot HostObserver::look(Depth depth) {
  Snapshot snapshot;
  parts_.node.read_memory(observations_);
  if (!of(observations_, Signal::kMemoryAvailable)) ++missing_;
  parts_.node.read_swap(observations_);
  parts_.node.read_pids(observations_);
  parts_.cgroups->look_closely(depth == Depth::kDecision);
  if (depth == Depth::kNode)
    look_at_pods_cgroup();
  else
    look_at_cgroups(snapshot);
  if (parts_.waits) snapshot.waits = parts_.waits->read(depth);
  if (snapshot.cgroups) look_inside(snapshot);
  of(observations_, Signal::kMemoryPressure) =
      pressure_.add(parts_.clock(), snapshot.waits.node_stalls);
  snapshot.observations = observations_;
  snapshot.images = parts_.images;
  // The instant it is all known: no sample is younger than the decision it leads to.
  snapshot.at = parts_.clock();
  return snapshot;
}

std::shared_ptr<const Pod> HostObserver::pod_of(CgroupId id) const {
  const KnownCgroup* cgroup = parts_.inventory.find(id);
  while (cgroup) {
    if (auto pod = registry_.find(cgroup->id)) return pod;
    if (cgroup->parent.value == 0) break;
    cgroup = parts_.inventory.find(cgroup->parent);
  }
  return nullptr;
}

void HostObserver::look_at_cgroups(Snapshot& snapshot) {
  const Instant at = parts_.clock();
  if (filesystems_read_ == Instant{} || at - filesystems_read_ >= kFilesystemPeriod) {
    parts_.node.read_filesystems(observations_);
    filesystems_read_ = at;
  }
  ++passes_;
  const auto swept = parts_.cgroups->sweep();
  if (!swept) {
    ++missing_;
    trouble_ = swept.error().what;
    return;
  }
  trouble_.clear();
  const std::span<const hr_record> records = *swept;
  const bool same = parts_.cgroups->same_cgroups();
  if (!same) {
    ++order_;
    snapshot.cgroups_changed = parts_.inventory.update(records);
    if (snapshot.cgroups_changed) tell_registry(records);
  }
  const CgroupSource::Marks marks = parts_.cgroups->marks();
  snapshot.news = {.marks = marks.of_records, .pass = marks.pass, .order = order_};
  read_pods_cgroup(records, at);
  snapshot.cgroups = records;
  if (parts_.disks)
    for (auto& measured : parts_.disks->take())
      registry_.measured(measured.cgroup, std::move(measured.usage));
  snapshot.pods = read_pods(records, snapshot.news, same);
  if (snapshot.cgroups_changed || at - scores_read_ >= kScorePeriod) read_scores(snapshot.pods, at);
  if (parts_.disks && retarget_) look_at_disks(snapshot.pods);
}

// What processes of pods without a description show of them.
void HostObserver::read_scores(std::span<const PodReading> pods, Instant at) {
  scores_read_ = at;
  awaited_.clear();
  for (const PodReading& reading : pods)
    if (reading.description != PodDescription::kComplete) awaited_.emplace(reading.cgroup, false);
  if (awaited_.empty()) return;
  parts_.inventory.each([&](const KnownCgroup& cgroup) {
    const KnownCgroup* pod = &cgroup;
    while (pod && !awaited_.contains(pod->id))
      pod = parts_.inventory.find(pod->parent);
    if (!pod) return;
    bool& is_protected = awaited_.at(pod->id);
    is_protected = is_protected || has_protected_process(cgroup, parts_.proc);
  });
  for (const auto& [id, is_protected] : awaited_)
    registry_.show_protected(id, is_protected);
}

std::span<const PodReading> HostObserver::read_pods(std::span<const hr_record> records,
                                                    const SweepNews& news, bool same) {
  if (!same || news.marks.empty())
    return registry_.read([&](CgroupId id) { return record_of(records, id); });
  return registry_.read_again([&](const hr_record* record) {
    return news.marks[static_cast<std::size_t>(record - records.data())].pass == news.pass;
  });
}

void HostObserver::look_inside(Snapshot& snapshot) {
  if (std::exchange(repart_, false))
    parts_reader_.retarget(snapshot.pods, parts_.inventory, registry_);
  parts_reader_.read(
      parts_.clock(), [&](CgroupId id) { return record_of(*snapshot.cgroups, id); },
      snapshot.waits);
}

void HostObserver::look_at_disks(std::span<const PodReading> pods) {
  retarget_ = false;
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
  parts_.disks->retarget(std::move(targets));
}

void HostObserver::measure_disks() {
  if (parts_.disks) parts_.disks->hurry();
}

// Only when the set of cgroups changed.
void HostObserver::tell_registry(std::span<const hr_record> records) {
  std::vector<CgroupId> known;
  known.reserve(parts_.inventory.size());
  parts_.inventory.each([&](const KnownCgroup& cgroup) { known.push_back(cgroup.id); });
  std::sort(known.begin(), known.end());

  std::vector<CgroupId> changed;
  std::set_difference(told_.begin(), told_.end(), known.begin(), known.end(),
                      std::back_inserter(changed));
  for (const CgroupId id : changed)
    registry_.gone(id);
  changed.clear();
  std::set_difference(known.begin(), known.end(), told_.begin(), told_.end(),
                      std::back_inserter(changed));
  for (const CgroupId id : changed)
    registry_.appeared(id, parts_.inventory.find(id)->path);
  told_ = std::move(known);
  retarget_ = repart_ = true;

  const KnownCgroup* pods = parts_.inventory.find("/" + parts_.pods_cgroup);
  pods_id_ = pods ? std::optional(pods->id) : std::nullopt;
  positions_.clear();
  for (std::uint32_t i = 0; i < records.size(); ++i)
    positions_[records[i].id] = i;
}

const hr_record* HostObserver::record_of(std::span<const hr_record> records, CgroupId id) const {
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

void HostObserver::read_pods_cgroup(std::span<const hr_record> records, Instant at) {
  const hr_record* record = pods_id_ ? record_of(records, *pods_id_) : nullptr;
  parts_.node.read_allocatable(record, at, observations_);
  if (!of(observations_, Signal::kAllocatableMemoryAvailable)) {
    pods_files_.reset();
  } else if (!pods_files_ || pods_files_->id() != pods_id_->value) {
    auto files = CgroupFiles::open(parts_.inventory.find(*pods_id_)->directory.get(), ".");
    if (files) pods_files_ = std::move(*files);
  }
}

// Between two passes: the pods' cgroup alone, from its files.
void HostObserver::look_at_pods_cgroup() {
  if (!pods_files_) return;
  hr_record record = unknown_record(pods_files_->id(), 0);
  DescriptorBudget budget{CgroupFiles::kFiles};
  std::array<char, 8192> buffer;
  const Instant at = parts_.clock();
  if (pods_files_->read(kAllocatableGroups, false, buffer, budget, record))
    parts_.node.read_allocatable(&record, at, observations_);
}

}  // namespace headroom::observe
