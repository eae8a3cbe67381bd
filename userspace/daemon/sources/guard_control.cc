// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/guard_control.h"

#include "base/log/journal.h"

namespace headroom::daemon {

bool GuardControl::set(Instant at, const Policy& policy, std::optional<Bytes> left) {
  if (!alarm_) return false;
  const bool checks = is_checking(at);
  if (checks != trusted_ && !checks) log::error("the guard of memory no longer looks");
  trusted_ = checks;
  if (!left) {
    if (armed_) alarm_->disarm();
    armed_ = false;
    return false;
  }
  if (!armed_) last_check_at_ = at;
  armed_ = alarm_->arm(Bytes{left->count / 8 * kEighths},
                       {.bytes_per_second = kEarlyShare * policy.fastest_fill,
                        .floor = policy.check_floor,
                        .ceiling = kCeiling});
  return armed_ && trusted_;
}

// A few of its longest waits without a look are too many; unarmed it need not look.
bool GuardControl::is_checking(Instant at) {
  if (const std::uint64_t checks = alarm_->checks(); checks != checks_) {
    checks_ = checks;
    last_check_at_ = at;
    return true;
  }
  return trusted_ && (!armed_ || at - last_check_at_ < 5 * kCeiling);
}

}  // namespace headroom::daemon
