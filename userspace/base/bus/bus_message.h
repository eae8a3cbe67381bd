// SPDX-License-Identifier: Apache-2.0
// BusMessage: an owning pointer to a message of sd-bus.
#pragma once

#include <systemd/sd-bus.h>

#include <memory>

namespace headroom {

struct BusMessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using BusMessage = std::unique_ptr<sd_bus_message, BusMessageUnref>;

}  // namespace headroom
