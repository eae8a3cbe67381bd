// SPDX-License-Identifier: Apache-2.0
// EventLog: the last events of the node, each with a number, for `headroomctl watch` and for
// whatever passes events on: evictions, node conditions, drift of slices, kills by the kernel's OOM
// killer.
//
// The loop adds events and never waits: while a reader copies, an event is kept back until the next
// turn. A reader asks for what is newer than the last number it knows, so a slow reader costs the
// daemon nothing, and it can tell how many events it missed.
#pragma once

#include "base/clock.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

class EventLog {
 public:
  static constexpr std::size_t kSize = 1024;    // events that are kept
  static constexpr std::size_t kMaxPage = 256;  // events in one answer

  // `instance`: differs from one start of the daemon to the next, because numbers begin again.
  explicit EventLog(std::string instance = new_instance());

  // {"seq": …, "time": …, "type": type}, then the fields, which are a JSON object. Called on the
  // loop's thread.
  void add(std::string_view type, WallTime at, const nlohmann::ordered_json& fields);
  // Adds the events that were kept back. Called in each turn.
  void flush();

  // {"instance", "first", "last", "events"}: the oldest and the newest number that is kept (both 0
  // if there is none), and up to kMaxPage events with a number above `after`, oldest first. Called
  // on any thread.
  std::string json(std::uint64_t after) const;

  // Events that neither a reader nor the log has seen: a reader copied for too long.
  std::uint64_t lost() const { return lost_; }

 private:
  static std::string new_instance();

  const std::string instance_;
  // On the loop's thread only.
  std::uint64_t next_ = 1;
  std::vector<std::shared_ptr<const std::string>> kept_back_;
  std::atomic<std::uint64_t> lost_{0};

  mutable std::mutex mutex_;
  std::array<std::shared_ptr<const std::string>, kSize> ring_;  // number n is at n % kSize
  std::uint64_t last_ = 0;                                      // the newest number in ring_
};

}  // namespace headroom::report
