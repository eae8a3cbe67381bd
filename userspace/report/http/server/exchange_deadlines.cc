// SPDX-License-Identifier: Apache-2.0
#include "report/http/server/exchange_deadlines.h"

#include <sys/socket.h>

namespace headroom::report {

void ExchangeDeadlines::shut_down_expired(Clock::time_point now) const {
  for (const auto& [socket, since] : since_)
    if (now - since > limit_) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace headroom::report
