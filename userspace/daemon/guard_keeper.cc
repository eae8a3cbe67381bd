// SPDX-License-Identifier: Apache-2.0
#include "daemon/guard_keeper.h"

#include "report/journal.h"

namespace headroom::daemon {

bool GuardKeeper::set(Instant at, const Policy& policy, std::optional<Bytes> left) {
  if (!alarm_) return false;
  const bool looks = looks_on(at);
  if (looks != trusted_ && !looks) log::error("the guard of memory no longer looks");
  trusted_ = looks;
  if (!left) {
    if (armed_) alarm_->stand_down();
    armed_ = false;
    return false;
  }
  if (!armed_) seen_at_ = at;
  armed_ = alarm_->arm(Bytes{left->count / 8 * kEighths},
                       {.bytes_per_second = kHaste * policy.fastest_fill,
                        .floor = policy.check_floor,
                        .ceiling = kCeiling});
  return armed_ && trusted_;
}

// A few of its longest waits without a look are too many; unarmed it need not look.
bool GuardKeeper::looks_on(Instant at) {
  if (const std::uint64_t looks = alarm_->looks(); looks != looks_) {
    looks_ = looks;
    seen_at_ = at;
    return true;
  }
  return trusted_ && (!armed_ || at - seen_at_ < 5 * kCeiling);
}

}  // namespace headroom::daemon
