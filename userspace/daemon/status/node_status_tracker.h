// SPDX-License-Identifier: Apache-2.0
// NodeStatusTracker: builds the node's status whenever something in it changes.
//
// It compares every turn with the previous one: while nothing changes, it builds and allocates
// nothing.
#pragma once

#include "config/config.h"
#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"
#include "report/view/node_status.h"

#include <headroom/judge.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace headroom::daemon {

// The name, labels, reservations and pod limits of the node.
struct NodeOptions {
  std::string name;
  Labels labels;
  AllocatablePolicy reserved;
  std::int64_t max_pods = 110;
  std::int64_t pods_per_core = 0;  // 0: no such limit
};

class NodeStatusTracker {
 public:
  // How often CPUs and huge pages are counted: both can change, but rarely do.
  static constexpr Duration kMachinePeriod = std::chrono::seconds(10);
  // For this long a new cgroup that had no processes yet counts as a pod that is being started.
  static constexpr Duration kMaxStartDuration = std::chrono::minutes(1);

  struct Setup {
    // Called on the loop's thread with every new status; must not block.
    std::function<void(const report::NodeStatusRef&)> on_change;
    // Called at the same time with the input of the status. May be unset; must not block.
    std::function<void(const Amounts& capacity, const std::vector<std::shared_ptr<const Pod>>&)>
        on_capacity{};
    // Counts CPUs and huge pages; the rest of the capacity comes from the signals.
    std::function<Amounts()> machine;
    std::function<report::Seconds()> wall_clock;
  };
  explicit NodeStatusTracker(Setup setup) : setup_(std::move(setup)) {}

  void reconfigure(NodeOptions options, const Policy& policy);

  // To be called after every turn.
  void update(const Snapshot& snapshot, const Verdict& verdict, std::span<const Outcome> outcomes);

  // The capacity as last observed.
  const Amounts& capacity() const { return capacity_; }

  // The latest status; null before the first. On any thread.
  report::NodeStatusRef current() const;

 private:
  using Active = std::vector<std::shared_ptr<const Pod>>;

  void refresh(const Snapshot& snapshot, const Verdict& verdict);
  bool update_pods(const Snapshot& snapshot);
  void update_starting(const Snapshot& snapshot);
  bool is_active(const PodReading& reading) const;
  bool is_active_unchanged(std::span<const PodReading> pods) const;
  bool update_capacity(const Snapshot& snapshot);
  bool update_conditions(const Verdict& verdict);
  report::NodeStatusRef build_status() const;
  std::vector<PodOnNode> admitted_pods() const;
  void publish(report::NodeStatusRef status);

  const Setup setup_;
  NodeOptions options_;
  Policy policy_;
  bool stale_ = true;
  Amounts capacity_;
  std::optional<Instant> machine_read_at_;
  std::array<report::ConditionStatus, kConditions> conditions_{};
  bool conditions_known_ = false;
  std::map<CgroupId, Instant> starting_;           // when first seen; no processes so far
  std::vector<CgroupId> listed_;                   // at the latest sweep, in its order
  std::optional<std::vector<CgroupId>> existing_;  // the same, sorted; absent: no sweep yet
  Active active_;
  Active published_pods_;  // same order as the pods of current_
  mutable std::mutex mutex_;
  report::NodeStatusRef current_;
};

// The options of this node, from its configuration and the host.

// The configured name, else the host's name as in a kubelet; the labels that every kubelet sets,
// and the configured ones.
NodeOptions node_options_of(const config::Config& config);

// CPUs and huge pages.
Amounts machine_amounts();

}  // namespace headroom::daemon
