// SPDX-License-Identifier: Apache-2.0
// Chronicle: follows evictions from decision to farewell and tells of them: log, audit, counters.
#pragma once

#include "report/audit.h"
#include "report/eviction_table.h"
#include "report/minute.h"
#include "report/node_view.h"

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
  const ShadowSight* shadow = nullptr;  // null: nobody looked
};

struct ChronicleSetup {
  AuditLog* audit = nullptr;
  const CgroupNames* names = nullptr;
  QosOf qos_of = nullptr;
  MinuteRecorder* minute = nullptr;
  // A pod's eviction has begun: its first signal is sent. On the loop's thread; must not wait.
  std::function<void(const Eviction&)> on_evicted;
};

class Chronicle {
 public:
  // A decision that failed or was pretended is told again only after so long without it.
  static constexpr Duration kQuiet = std::chrono::seconds(60);

  explicit Chronicle(ChronicleSetup setup) : setup_(std::move(setup)) {}

  // True: something worth showing happened.
  bool follow(const Turn& turn, Counters& counters);

  // Evictions whose record made way for another's.
  std::uint64_t overwritten() const { return table_.overwritten(); }

 private:
  void hear(const Outcome& outcome, const Turn& turn, Counters& counters);
  void done(const Outcome& outcome, const Turn& turn, Counters& counters);
  void not_done(const Outcome& outcome, Ending ending, const Turn& turn, Counters& counters);
  void ended(const Farewell& farewell, Counters& counters);
  Unfolding& begin(const Outcome& outcome, const Turn& turn, Counters& counters);
  void tell(Unfolding& unfolding, Ending ending, Instant at);
  void say(const Outcome& outcome) const;

  bool under_way(const Decision& decision);

  const ChronicleSetup setup_;
  EvictionTable table_;
  ClimbedSteps climbed_;
};

}  // namespace headroom::report
