// SPDX-License-Identifier: Apache-2.0
#include "daemon/status/node_status_reporter.h"

#include "judge/allocatable/cgroup/huge_pages.h"
#include "judge/allocatable/node_allocatable.h"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>

namespace headroom::daemon {
namespace {

std::optional<std::int64_t> capacity_of(const Snapshot& snapshot, Signal signal) {
  const auto& seen = of(snapshot.observations, signal);
  return seen ? std::optional(seen->capacity) : std::nullopt;
}

// Keeps what was known where this look could not tell.
template <class T>
bool update(std::optional<T>& known, std::optional<std::int64_t> seen) {
  if (!seen || (known && known->count == *seen)) return false;
  known = T{*seen};
  return true;
}

std::int64_t most_pods(const NodeOptions& terms, const Amounts& capacity) {
  if (terms.pods_per_core == 0 || !capacity.cpu) return terms.max_pods;
  return std::min(terms.max_pods, terms.pods_per_core * (capacity.cpu->count / 1000));
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

// A pod that has ended holds nothing; of one whose record is missing that is not known.
bool active(const PodReading& reading) {
  return !reading.record || reading.record->populated != 0;
}

}  // namespace

void NodeStatusReporter::adopt(NodeOptions terms, const Policy& policy) {
  terms_ = std::move(terms);
  policy_ = policy;
  stale_ = true;
}

void NodeStatusReporter::report_turn(const Snapshot& snapshot, const Verdict& verdict,
                                     std::span<const Outcome> outcomes) {
  // A turn that acts is no time for bookkeeping: the next one will do.
  if (outcomes.empty() && !verdict.needs_cgroups) {
    try {
      look(snapshot, verdict);
    } catch (const std::exception&) {  // out of memory: what is shown stays, and is tried again
      stale_ = true;
    }
  }
  setup_.next->report_turn(snapshot, verdict, outcomes);
}

void NodeStatusReporter::look(const Snapshot& snapshot, const Verdict& verdict) {
  stale_ |= update_conditions(verdict);
  stale_ |= update_capacity(snapshot);
  if (snapshot.cgroups) stale_ |= update_pods(snapshot);
  if (!stale_) return;
  show(build_status());
  if (setup_.on_stock) setup_.on_stock(capacity_, active_);
  shown_active_ = active_;
  stale_ = false;
}

bool NodeStatusReporter::update_pods(const Snapshot& snapshot) {
  if (are_active(snapshot.pods)) return false;
  active_.clear();
  for (const PodReading& reading : snapshot.pods)
    if (active(reading)) active_.push_back(reading.pod);
  return true;
}

bool NodeStatusReporter::are_active(std::span<const PodReading> pods) const {
  auto next = active_.begin();
  for (const PodReading& reading : pods) {
    if (!active(reading)) continue;
    if (next == active_.end() || *next != reading.pod) return false;
    ++next;
  }
  return next == active_.end();
}

bool NodeStatusReporter::update_capacity(const Snapshot& snapshot) {
  bool news = update(capacity_.memory, capacity_of(snapshot, Signal::kMemoryAvailable));
  news |= update(capacity_.ephemeral_storage, capacity_of(snapshot, Signal::kNodeFsAvailable));
  news |= update(capacity_.pids, capacity_of(snapshot, Signal::kPidAvailable));
  if (machine_at_ && snapshot.at - *machine_at_ < kMachinePeriod) return news;
  machine_at_ = snapshot.at;
  Amounts machine = setup_.machine();
  if (machine.cpu && machine.cpu != capacity_.cpu) {
    capacity_.cpu = machine.cpu;
    news = true;
  }
  if (machine.huge_pages != capacity_.huge_pages) {
    capacity_.huge_pages = std::move(machine.huge_pages);
    news = true;
  }
  return news;
}

bool NodeStatusReporter::update_conditions(const Verdict& verdict) {
  bool news = false;
  for (std::size_t i = 0; i < kConditions; ++i) {
    report::ConditionStatus& node_condition = conditions_[i];
    if (conditions_known_ && node_condition.holds == verdict.conditions[i]) continue;
    node_condition = {.holds = verdict.conditions[i], .since = setup_.wall_clock()};
    news = true;
  }
  conditions_known_ = true;
  return news;
}

// What was worked out for the status on show is taken over from there.
std::vector<PodOnNode> NodeStatusReporter::admitted_pods() const {
  const report::NodeStatusRef old = current();
  std::unordered_map<const Pod*, std::size_t> known;
  for (std::size_t i = 0; old && i < shown_active_.size() && i < old->state.pods.size(); ++i)
    known.emplace(shown_active_[i].get(), i);
  std::vector<PodOnNode> pods;
  for (const auto& pod : active_) {
    const auto same = known.find(pod.get());
    pods.push_back(same == known.end() ? on_node(*pod) : old->state.pods[same->second]);
  }
  return pods;
}

report::NodeStatusRef NodeStatusReporter::build_status() const {
  auto status = std::make_shared<report::NodeStatus>();
  status->at = setup_.wall_clock();
  status->conditions = conditions_;
  const std::int64_t pods = most_pods(terms_, capacity_);
  status->capacity = with_pods(resources(capacity_), pods);
  const auto node = node_allocatable(capacity_, terms_.reserved, policy_.thresholds);
  if (node) {
    status->reserved = resources(node->reservation);
    status->allocatable = with_pods(resources(node->allocatable), pods);
  } else {
    status->error = invalid_node_allocatable(node.error());
  }
  NodeState& state = status->state;
  state.name = terms_.name;
  state.labels = terms_.labels;
  state.allocatable = counts_of(status->allocatable);
  for (const auto& taint : policy_.taints)
    state.taints.push_back(*taint);
  for (std::size_t i = 0; i < kConditions; ++i)
    state.conditions[i] = conditions_[i].holds;
  state.pods = admitted_pods();
  status->requested = quantities(requested(state));
  status->limits = quantities(limited(state));
  return status;
}

void NodeStatusReporter::show(report::NodeStatusRef status) {
  {
    const std::lock_guard lock(mutex_);
    shown_ = status;
  }
  setup_.on_change(status);
}

report::NodeStatusRef NodeStatusReporter::current() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

}  // namespace headroom::daemon
