// SPDX-License-Identifier: Apache-2.0
// SliceReconciler: reads the slices and restores settings that differ from the desired ones. Used
// by one thread.
#pragma once

#include "act/limits/limit_lowering.h"
#include "act/units/unit_manager.h"
#include "config/config.h"
#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/slice_plan.h"
#include "judge/allocatable/node_cgroups.h"
#include "judge/allocatable/pod_sizing.h"
#include "observe/cgroup/slice_reader.h"
#include "report/view/slices_view.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/policy.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headroom::daemon {

// The input from which the slices' values are computed.
struct SliceOptions {
  SlicesMode mode = SlicesMode::kOff;
  act::Persistence persistence = act::Persistence::kUntilReboot;
  AllocatablePolicy policy;
  PodSizing sizing;
  std::vector<Threshold> thresholds;
  Amounts capacity;
  std::vector<std::shared_ptr<const Pod>> active;
};

class SliceReconciler {
 public:
  // Usage above a limit that is to be lowered is reclaimed for this time; if that is not enough,
  // again after the pause.
  static constexpr Duration kLowering = std::chrono::seconds(10);
  static constexpr Duration kLoweringPause = std::chrono::minutes(1);
  // systemd answers when a slice is to be made or to have another controller, and does it
  // afterwards; on the way it may take a controller from the slices beside it for a moment. What is
  // read in this time after its last answer is no drift.
  static constexpr Duration kSettling = std::chrono::milliseconds(500);

  // `request_check` is called after a change, to check again soon.
  SliceReconciler(observe::SliceReader reader, CpuSet possible_cpus,
                  std::unique_ptr<act::LimitLowering> lowering,
                  std::function<void()> request_check);

  void reconfigure(SliceOptions options);
  // Sets the unit manager; null: systemd cannot be reached, because of `why`. Open calls are
  // dropped.
  void use(act::UnitManager* units, std::string why);

  // Reads every slice and starts to correct wrong values; returns when a delayed step is due, if
  // that is before the next check.
  std::optional<Instant> reconcile(Instant at);

  report::SlicesView view() const;
  std::vector<std::string> paths() const;

 private:
  struct Slice {
    NodeCgroup wanted;
    Amounts share;
    SliceReading reading;
    SlicePlan plan;
    SliceHistory history;
    std::optional<Instant> read_at;
    std::optional<double> cpus;
    bool busy = false;      // a call has no answer yet
    bool creating = false;  // that call makes the slice or enables controllers
    std::string error;
    std::map<std::string, std::uint64_t> drift;
    report::LimitLoweringView lowering;
    Instant next_lowering_at{};
    std::string huge_pages_error;  // why huge pages are not limited
  };

  void compute_desired();
  bool settled(Instant at);
  void inspect_slice(Slice& slice, Instant at);
  void count_drift(Slice& slice) const;
  void correct_drift(Slice& slice, Instant at);
  void begin(Slice& slice);
  void set_huge_pages(Slice& slice);
  void start_lowering(Slice& slice, Instant at);
  void record_lowered(Instant at);
  std::optional<Bytes> step_of(const Slice& slice) const;
  void write_cgroup_files(const Slice& slice) const;
  Fd open_read(const Slice& slice) const;
  void ended(const std::string& path, const Result<>& result);
  act::UnitProperties properties(const Slice& slice) const;
  Amounts share_of(NodeCgroup::Role role, const NodeAllocatable& node) const;

  const observe::SliceReader reader_;
  const CpuSet possible_cpus_;
  const std::unique_ptr<act::LimitLowering> lowering_;
  const std::function<void()> request_check_;
  SliceOptions options_;
  act::UnitManager* units_ = nullptr;
  std::string unavailable_reason_;
  bool created_ = false;  // systemd answered to `create` since the last check
  Instant settled_at_{};
  std::string last_error_;               // the error in the options
  std::vector<std::string> order_;       // parents first
  std::map<std::string, Slice> slices_;  // by path; unwanted slices stay, for their counts
};

// The slices' input from a configuration and a node.

// The mode in force: in mode observe no slice is written either.
SlicesMode slices_mode(const config::Config& config);

SliceOptions slice_options(const config::Config& config, const Amounts& capacity,
                           std::vector<std::shared_ptr<const Pod>> active);

// The node's capacity, read now; may wait for a disk.
Amounts capacity_now(const config::Config& config);

// Errors of reservations that exceed the node's capacity; empty while slices are off, since they
// are then only reported.
config::Diagnostics reservation_errors(const config::Config& config, const Amounts& capacity);

}  // namespace headroom::daemon
