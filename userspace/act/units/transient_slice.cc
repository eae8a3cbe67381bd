// SPDX-License-Identifier: Apache-2.0
#include "act/units/transient_slice.h"

#include "act/units/dbus_unit_manager.h"
#include "base/bus_message.h"

#include <systemd/sd-bus.h>

#include <functional>
#include <memory>

namespace headroom::act {
namespace {

struct BusClose {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};

struct BusError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~BusError() { sd_bus_error_free(&error); }
};

Result<> call(const std::string& doing, const char* method,
              const std::function<int(sd_bus_message*)>& append) {
  sd_bus* opened = nullptr;
  if (int r = sd_bus_open_system(&opened); r < 0) return errno_failure("reach systemd", -r);
  const std::unique_ptr<sd_bus, BusClose> bus(opened);
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(opened, &made, "org.freedesktop.systemd1",
                                         "/org/freedesktop/systemd1",
                                         "org.freedesktop.systemd1.Manager", method);
  const BusMessage message(made);
  if (r >= 0) r = append(made);
  if (r < 0) return errno_failure(doing, -r);
  BusError error;
  r = sd_bus_call(opened, made, 0, &error.error, nullptr);
  if (r >= 0) return {};
  return error.error.message ? failure(doing + ": " + error.error.message, -r)
                             : errno_failure(doing, -r);
}

}  // namespace

Result<> start_transient_slice(const std::string& unit, const UnitProperties& properties) {
  return call("start " + unit, "StartTransientUnit", [&](sd_bus_message* message) {
    int r = sd_bus_message_append(message, "ss", unit.c_str(), "fail");
    if (r >= 0) r = append(message, properties);
    return r < 0 ? r : sd_bus_message_append(message, "a(sa(sv))", 0);
  });
}

Result<> stop_unit(const std::string& unit) {
  return call("stop " + unit, "StopUnit", [&](sd_bus_message* message) {
    return sd_bus_message_append(message, "ss", unit.c_str(), "replace");
  });
}

}  // namespace headroom::act
