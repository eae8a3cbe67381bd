// SPDX-License-Identifier: Apache-2.0
// EventSource: makes events of what a turn of the loop reports, and adds them to the event log.
// Used on the loop's thread.
#pragma once

#include "base/clock.h"
#include "report/eviction/eviction.h"
#include "report/kernel_oom.h"
#include "report/view/event_log.h"
#include "report/view/node_view.h"

#include <headroom/judge.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

class EventSource {
 public:
  EventSource(EventLog& log, QosOf qos_of, std::function<WallTime(Instant)> wall_time)
      : log_(log), qos_of_(qos_of), wall_time_(std::move(wall_time)) {}

  // Type "eviction", with "phase": "began" when the first signal was sent, and "ended" with its
  // outcome. An eviction that does not begin, such as one in mode observe, has the second only.
  void add_eviction(const Eviction& eviction, std::string_view phase);
  // Type "condition" for each that differs from the last call.
  void update_conditions(const std::array<bool, kConditions>& conditions, Instant at);
  // Type "drift" for each setting that another program changed since the last call.
  void update_slices(const SlicesRef& slices, Instant at);
  // Type "oom_kill".
  void add_oom_kill(const KernelOomKill& kill, Instant at);

 private:
  EventLog& log_;
  const QosOf qos_of_;
  const std::function<WallTime(Instant)> wall_time_;
  std::array<bool, kConditions> conditions_{};
  SlicesRef slices_;  // of the last call
};

}  // namespace headroom::report
