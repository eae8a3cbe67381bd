// SPDX-License-Identifier: Apache-2.0
// A connection to the system bus for calls that wait, on any thread but the loop's.
#pragma once

#include <headroom/result.h>

#include <chrono>
#include <memory>

struct sd_bus;

namespace headroom {

struct CloseBus {
  void operator()(sd_bus* bus) const;
};
using SystemBus = std::unique_ptr<sd_bus, CloseBus>;

inline constexpr std::chrono::milliseconds kBusTimeout{5000};
// For a job of systemd, which may be busy: sd-bus' own default for a call.
inline constexpr std::chrono::milliseconds kSystemdTimeout{25000};

// Waits until the bus has greeted us: sd_bus_open_system() does not, and the first call of a
// connection then waits for up to 90 s, whatever its own timeout. ETIMEDOUT: the bus hangs; ENOENT,
// ECONNREFUSED: there is none. `name` is as busctl shows the connection; each call waits for
// `timeout` at most as well.
Result<SystemBus> open_system_bus(const char* name,
                                  std::chrono::milliseconds timeout = kBusTimeout);

}  // namespace headroom
