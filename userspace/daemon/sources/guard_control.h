// SPDX-License-Identifier: Apache-2.0
// GuardControl: sets the memory guard between two turns, and decides whether it can be relied on.
//
// It is relied on while its checks are seen to run; otherwise the loop checks as often as if there
// were no guard.
#pragma once

#include "observe/bpf/memory_alarm.h"

#include <headroom/policy.h>
#include <headroom/units.h>

#include <cstdint>
#include <optional>

namespace headroom::daemon {

class GuardControl {
 public:
  // The guard doubts what we believe of how fast memory fills here: its looks cost next to nothing.
  static constexpr std::int64_t kEarlyShare = 16;
  static constexpr Duration kCeiling = std::chrono::milliseconds(100);
  // Woken when so much of what is left is taken: the counters the guard reads lag a little.
  static constexpr std::int64_t kEighths = 7;

  // Null: there is no guard, and nothing to rely on.
  explicit GuardControl(observe::MemoryAlarm* alarm) : alarm_(alarm) {}

  // After a turn: so much may be taken until the nearest threshold (absent: none is ahead). True if
  // the guard will wake us.
  bool set(Instant at, const Policy& policy, std::optional<Bytes> left);

 private:
  bool is_checking(Instant at);

  observe::MemoryAlarm* alarm_;
  bool trusted_ = false;
  bool armed_ = false;
  Instant last_check_at_;     // when it was last known to have looked
  std::uint64_t checks_ = 0;  // as of then
};

}  // namespace headroom::daemon
