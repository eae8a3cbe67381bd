// SPDX-License-Identifier: Apache-2.0
// StatusKeeper: puts the node's status together whenever it changes, on the way to whoever reports.
//
// It is told of every turn before the reporter behind it, and looks for what is new by comparing:
// nothing is built, or allocated, while nothing changes.
#pragma once

#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"
#include "report/view/node_status.h"

#include <headroom/ports.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace headroom::daemon {

// What is told of the node, and what of it is reserved.
struct NodeOptions {
  std::string name;
  Labels labels;
  AllocatablePolicy reserved;
  std::int64_t max_pods = 110;
  std::int64_t pods_per_core = 0;  // 0: no such limit
};

class NodeStatusReporter final : public Reporter {
 public:
  // How often CPUs and huge pages are counted: both can change, neither does often.
  static constexpr Duration kMachinePeriod = std::chrono::seconds(10);

  struct Setup {
    Reporter* next = nullptr;  // told of the same turn afterwards
    // On the loop's thread, with every new status; must not wait.
    std::function<void(const report::NodeStatusRef&)> on_change;
    // With it, what it was put together from; may be empty. Likewise.
    std::function<void(const Amounts& capacity, const std::vector<std::shared_ptr<const Pod>>&)>
        on_capacity{};
    // The CPUs and huge pages there are; the rest of the capacity comes with the signals.
    std::function<Amounts()> machine;
    std::function<report::Seconds()> wall_clock;
  };
  explicit NodeStatusReporter(Setup setup) : setup_(std::move(setup)) {}

  // From now on.
  void reconfigure(NodeOptions options, const Policy& policy);

  void report_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes) override;

  // As last seen.
  const Amounts& capacity() const { return capacity_; }

  // The latest; null before the first. Any thread.
  report::NodeStatusRef current() const;

 private:
  using Active = std::vector<std::shared_ptr<const Pod>>;

  void refresh(const Snapshot& snapshot, const Verdict& verdict);
  bool update_pods(const Snapshot& snapshot);
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
  Active active_;
  Active published_pods_;  // in step with the pods of the status on show
  mutable std::mutex mutex_;
  report::NodeStatusRef current_;
};

}  // namespace headroom::daemon
