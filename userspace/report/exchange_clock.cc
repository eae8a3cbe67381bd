// SPDX-License-Identifier: Apache-2.0
#include "report/exchange_clock.h"

#include <sys/socket.h>

namespace headroom::report {

void ExchangeClock::cut_off(Clock::time_point now) const {
  for (const auto& [socket, since] : since_)
    if (now - since > limit_) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace headroom::report
