// SPDX-License-Identifier: Apache-2.0
#include "ctl/client.h"

#include "report/dbus.h"

#include <systemd/sd-bus.h>

#include <memory>

namespace headroom::ctl {
namespace {

constexpr std::uint64_t kTimeoutUsec = 5'000'000;

struct BusClose {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct MessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Bus = std::unique_ptr<sd_bus, BusClose>;
using Message = std::unique_ptr<sd_bus_message, MessageUnref>;

struct BusError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~BusError() { sd_bus_error_free(&error); }
};

Result<Bus> open_bus() {
  sd_bus* bus = nullptr;
  if (int r = sd_bus_open_system(&bus); r < 0)
    return errno_failure("cannot reach the system bus", -r);
  return Bus(bus);
}

std::string refusal(const sd_bus_error& error, int code) {
  if (sd_bus_error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
      sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
    return "headroomd is not running (nobody owns io.headroom.Headroom1 on the system bus); see "
           "systemctl status headroomd";
  return std::string("ask headroomd for its status: ") +
         (error.message ? error.message : std::strerror(code));
}

}  // namespace

Result<std::string> fetch_status() {
  auto bus = open_bus();
  if (!bus) return tl::make_unexpected(std::move(bus.error()));
  sd_bus_set_method_call_timeout(bus->get(), kTimeoutUsec);
  BusError error;
  sd_bus_message* answer = nullptr;
  int r = sd_bus_call_method(bus->get(), report::kBusName, report::kBusPath, report::kBusInterface,
                             "Status", &error.error, &answer, "");
  const Message owned(answer);
  if (r < 0) return failure(refusal(error.error, -r), -r);
  const char* document = nullptr;
  r = sd_bus_message_read(answer, "s", &document);
  if (r < 0) return errno_failure("read headroomd's answer", -r);
  return std::string(document);
}

}  // namespace headroom::ctl
