// SPDX-License-Identifier: Apache-2.0
// EvictionTracker: follows evictions from decision to end and reports them: log, audit, counters.
#pragma once

#include "report/eviction/audit_log.h"
#include "report/eviction/eviction_table.h"
#include "report/eviction/flight_recorder.h"
#include "report/view/node_view.h"

#include <headroom/judge.h>
#include <headroom/snapshot.h>

#include <functional>
#include <span>

namespace headroom::report {

// What happened in one turn of the loop.
struct Turn {
  const Policy& policy;
  const Snapshot& snapshot;
  const Verdict& verdict;
  std::span<const Outcome> outcomes;
  std::uint64_t kill_path_allocations = 0;
  const ShadowResult* shadow = nullptr;  // null: not computed
};

struct EvictionTrackerSetup {
  AuditLog* audit = nullptr;
  const CgroupNames* names = nullptr;
  QosOf qos_of = nullptr;
  FlightRecorder* flight_recording = nullptr;
  // A pod's eviction began: its first signal was sent. Called on the loop's thread; must not block.
  std::function<void(const Eviction&)> on_evicted;
  // An eviction ended, failed, or was a dry run. Called on the loop's thread; must not block.
  std::function<void(const Eviction&)> on_ended{};
};

class EvictionTracker {
 public:
  // The same failed decision or dry run is reported again only if it did not occur for this long.
  static constexpr Duration kRepeatRetention = std::chrono::seconds(60);

  explicit EvictionTracker(EvictionTrackerSetup setup) : setup_(std::move(setup)) {}

  // True: something happened that should be published.
  bool update(const Turn& turn, Counters& counters);

  // Evictions whose record was dropped because the table was full.
  std::uint64_t overwritten() const { return table_.overwritten(); }

 private:
  void handle_outcome(const Outcome& outcome, const Turn& turn, Counters& counters);
  void record_done(const Outcome& outcome, const Turn& turn, Counters& counters);
  void record_not_done(const Outcome& outcome, Ending ending, const Turn& turn, Counters& counters);
  void record_end(const EvictionEnd& eviction_end, Counters& counters);
  TrackedEviction& start_record(const Outcome& outcome, const Turn& turn, Counters& counters);
  void submit_record(TrackedEviction& tracked, Ending ending, Instant at);
  void log_outcome(const Outcome& outcome) const;

  bool under_way(const Decision& decision);

  const EvictionTrackerSetup setup_;
  EvictionTable table_;
  RecentLadderSteps recent_ladder_steps_;
};

}  // namespace headroom::report
