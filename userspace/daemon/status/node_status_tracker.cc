// SPDX-License-Identifier: Apache-2.0
#include "daemon/status/node_status_tracker.h"

#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/node_allocatable.h"
#include "observe/node/capacity.h"

#include <sys/utsname.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace headroom::daemon {
namespace {

std::optional<std::int64_t> capacity_of(const Snapshot& snapshot, Signal signal) {
  const auto& observed = of(snapshot.observations, signal);
  return observed ? std::optional(observed->capacity) : std::nullopt;
}

// Keeps the known value if this snapshot has none.
template <class T>
bool update_amount(std::optional<T>& known, std::optional<std::int64_t> observed) {
  if (!observed || (known && known->count == *observed)) return false;
  known = T{*observed};
  return true;
}

std::int64_t max_pods_of(const NodeOptions& options, const Amounts& capacity) {
  if (options.pods_per_core == 0 || !capacity.cpu) return options.max_pods;
  return std::min(options.max_pods, options.pods_per_core * (capacity.cpu->count / 1000));
}

ResourceList resources(const Amounts& amounts) {
  ResourceList list;
  const auto put = [&](const char* resource, std::int64_t count) {
    list.emplace(resource, quantity_of(resource, count));
  };
  if (amounts.cpu) put("cpu", amounts.cpu->count);
  if (amounts.memory) put("memory", amounts.memory->count);
  if (amounts.ephemeral_storage) put("ephemeral-storage", amounts.ephemeral_storage->count);
  for (const auto& [size, bytes] : amounts.huge_pages)
    put(huge_page_resource(size).c_str(), bytes.count);
  return list;
}

ResourceList with_pods(ResourceList list, std::int64_t pods) {
  list.emplace("pods", quantity_of("pods", pods));
  return list;
}

ResourceList quantities(const ResourceCounts& counts) {
  ResourceList list;
  for (const auto& [resource, count] : counts)
    list.emplace(resource, quantity_of(resource, count));
  return list;
}

// A pod whose record is missing may have processes.
bool has_processes(const PodReading& reading) {
  return !reading.record || reading.record->populated != 0;
}

// Also if that was between two sweeps.
bool had_processes(const PodReading& reading) {
  const hr_record* record = reading.record;
  return record && record->valid & HR_CPU && record->cpu_usage_ns > 0;
}

}  // namespace

void NodeStatusTracker::reconfigure(NodeOptions options, const Policy& policy) {
  options_ = std::move(options);
  policy_ = policy;
  stale_ = true;
}

void NodeStatusTracker::update(const Snapshot& snapshot, const Verdict& verdict,
                               std::span<const Outcome> outcomes) {
  // A turn that acts must not be delayed: the status is updated in the next one.
  if (!outcomes.empty() || verdict.needs_cgroups) return;
  try {
    refresh(snapshot, verdict);
  } catch (const std::exception&) {  // out of memory: the old status is kept until the next turn
    stale_ = true;
  }
}

void NodeStatusTracker::refresh(const Snapshot& snapshot, const Verdict& verdict) {
  stale_ |= update_conditions(verdict);
  stale_ |= update_capacity(snapshot);
  if (snapshot.cgroups) stale_ |= update_pods(snapshot);
  if (!stale_) return;
  publish(build_status());
  if (setup_.on_capacity) setup_.on_capacity(capacity_, active_);
  published_pods_ = active_;
  stale_ = false;
}

// Tracks pods that are being started: otherwise two pods that start at the same time would be given
// the same resources. A cgroup that is empty at the first sweep belongs to an ended pod.
void NodeStatusTracker::update_starting(const Snapshot& snapshot) {
  const bool same_pods =
      existing_ && std::ranges::equal(listed_, snapshot.pods, {}, {}, &PodReading::cgroup);
  if (same_pods && starting_.empty()) return;
  listed_.clear();
  for (const PodReading& reading : snapshot.pods) {
    listed_.push_back(reading.cgroup);
    if (has_processes(reading) || had_processes(reading))
      starting_.erase(reading.cgroup);
    else if (existing_ && !std::ranges::binary_search(*existing_, reading.cgroup))
      starting_.emplace(reading.cgroup, snapshot.at);
  }
  std::vector<CgroupId> existing = listed_;
  std::ranges::sort(existing);
  std::erase_if(starting_, [&](const auto& each) {
    return snapshot.at - each.second >= kMaxStartDuration ||
           !std::ranges::binary_search(existing, each.first);
  });
  existing_ = std::move(existing);
}

// A pod without processes has ended, unless it is being started.
bool NodeStatusTracker::is_active(const PodReading& reading) const {
  return has_processes(reading) || starting_.contains(reading.cgroup);
}

bool NodeStatusTracker::update_pods(const Snapshot& snapshot) {
  update_starting(snapshot);
  if (is_active_unchanged(snapshot.pods)) return false;
  active_.clear();
  for (const PodReading& reading : snapshot.pods)
    if (is_active(reading)) active_.push_back(reading.pod);
  return true;
}

bool NodeStatusTracker::is_active_unchanged(std::span<const PodReading> pods) const {
  auto next = active_.begin();
  for (const PodReading& reading : pods) {
    if (!is_active(reading)) continue;
    if (next == active_.end() || *next != reading.pod) return false;
    ++next;
  }
  return next == active_.end();
}

bool NodeStatusTracker::update_capacity(const Snapshot& snapshot) {
  bool changed = update_amount(capacity_.memory, capacity_of(snapshot, Signal::kMemoryAvailable));
  changed |=
      update_amount(capacity_.ephemeral_storage, capacity_of(snapshot, Signal::kNodeFsAvailable));
  changed |= update_amount(capacity_.pids, capacity_of(snapshot, Signal::kPidAvailable));
  if (machine_read_at_ && snapshot.at - *machine_read_at_ < kMachinePeriod) return changed;
  machine_read_at_ = snapshot.at;
  Amounts machine = setup_.machine();
  if (machine.cpu && machine.cpu != capacity_.cpu) {
    capacity_.cpu = machine.cpu;
    changed = true;
  }
  if (machine.huge_pages != capacity_.huge_pages) {
    capacity_.huge_pages = std::move(machine.huge_pages);
    changed = true;
  }
  return changed;
}

bool NodeStatusTracker::update_conditions(const Verdict& verdict) {
  bool changed = false;
  for (std::size_t i = 0; i < kConditions; ++i) {
    report::ConditionStatus& node_condition = conditions_[i];
    if (conditions_known_ && node_condition.holds == verdict.conditions[i]) continue;
    node_condition = {.holds = verdict.conditions[i], .since = setup_.wall_clock()};
    changed = true;
  }
  conditions_known_ = true;
  return changed;
}

// Reuses the entries of pods that are in the current status already.
std::vector<PodOnNode> NodeStatusTracker::admitted_pods() const {
  const report::NodeStatusRef old = current();
  std::unordered_map<const Pod*, std::size_t> known;
  for (std::size_t i = 0; old && i < published_pods_.size() && i < old->state.pods.size(); ++i)
    known.emplace(published_pods_[i].get(), i);
  std::vector<PodOnNode> pods;
  for (const auto& pod : active_) {
    const auto same = known.find(pod.get());
    pods.push_back(same == known.end() ? on_node(*pod) : old->state.pods[same->second]);
  }
  return pods;
}

report::NodeStatusRef NodeStatusTracker::build_status() const {
  auto status = std::make_shared<report::NodeStatus>();
  status->at = setup_.wall_clock();
  status->conditions = conditions_;
  const std::int64_t pods = max_pods_of(options_, capacity_);
  status->capacity = with_pods(resources(capacity_), pods);
  const auto node = node_allocatable(capacity_, options_.reserved, policy_.thresholds);
  if (node) {
    status->reserved = resources(node->reservation);
    status->allocatable = with_pods(resources(node->allocatable), pods);
  } else {
    status->error = invalid_node_allocatable(node.error());
  }
  NodeState& state = status->state;
  state.name = options_.name;
  state.labels = options_.labels;
  state.allocatable = counts_of(status->allocatable);
  for (const auto& taint : policy_.taints)
    state.taints.push_back(*taint);
  for (std::size_t i = 0; i < kConditions; ++i)
    state.conditions[i] = conditions_[i].holds;
  state.pods = admitted_pods();
  status->requested = quantities(requested(state));
  status->limits = quantities(total_limits(state));
  return status;
}

void NodeStatusTracker::publish(report::NodeStatusRef status) {
  {
    const std::lock_guard lock(mutex_);
    current_ = status;
  }
  setup_.on_change(status);
}

report::NodeStatusRef NodeStatusTracker::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

namespace {

// The architecture's name in Go and Kubernetes.
std::string architecture(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

std::string lower_case(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return name;
}

}  // namespace

NodeOptions node_options_of(const config::Config& config) {
  utsname host{};
  ::uname(&host);
  NodeOptions options;
  options.name = config.node_name.empty() ? lower_case(host.nodename) : config.node_name;
  options.labels = config.node_labels;
  // Labels of the configuration have precedence over these.
  options.labels.emplace("kubernetes.io/hostname", lower_case(host.nodename));
  options.labels.emplace("kubernetes.io/os", "linux");
  options.labels.emplace("kubernetes.io/arch", architecture(host.machine));
  options.reserved = config.reserved;
  options.max_pods = config.max_pods;
  options.pods_per_core = config.pods_per_core;
  return options;
}

Amounts machine_amounts() {
  Amounts amounts;
  if (const auto cpus = observe::online_cpus()) amounts.cpu = MilliCpu{*cpus * 1000};
  amounts.huge_pages = observe::huge_page_pools();
  return amounts;
}

}  // namespace headroom::daemon
