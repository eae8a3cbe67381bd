// SPDX-License-Identifier: Apache-2.0
#include "base/bus/system_bus.h"

#include <systemd/sd-bus.h>

#include <cerrno>
#include <cstdint>

namespace headroom {
namespace {

// 0, or a negative errno.
int wait_until_ready(sd_bus* bus, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + timeout;
  for (;;) {
    if (const int ready = sd_bus_is_ready(bus); ready != 0) return ready < 0 ? ready : 0;
    const int processed = sd_bus_process(bus, nullptr);
    if (processed < 0) return processed;
    if (processed > 0) continue;
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now());
    if (left.count() <= 0) return -ETIMEDOUT;
    if (const int r = sd_bus_wait(bus, static_cast<std::uint64_t>(left.count()));
        r < 0 && r != -EINTR)
      return r;
  }
}

}  // namespace

void CloseBus::operator()(sd_bus* bus) const {
  sd_bus_close_unref(bus);
}

Result<SystemBus> open_system_bus(const char* name, std::chrono::milliseconds timeout) {
  sd_bus* opened = nullptr;
  int r = sd_bus_open_system_with_description(&opened, name);
  SystemBus bus(opened);
  if (r >= 0) r = wait_until_ready(opened, timeout);
  if (r < 0) return errno_failure("reach the system bus", -r);
  const auto each = std::chrono::duration_cast<std::chrono::microseconds>(timeout);
  sd_bus_set_method_call_timeout(opened, static_cast<std::uint64_t>(each.count()));
  return bus;
}

}  // namespace headroom
