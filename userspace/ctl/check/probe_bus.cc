// SPDX-License-Identifier: Apache-2.0
// Probes the system bus: systemd's version, and whether headroomd answers.
#include "ctl/check/probe_host.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/status_document.h"

#include <systemd/sd-bus.h>

#include <cstdlib>
#include <memory>

namespace headroom::ctl::check {
namespace {

struct CloseBus {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct Free {
  void operator()(char* text) const { std::free(text); }
};

Result<std::string> systemd_version() {
  sd_bus* opened = nullptr;
  if (const int r = sd_bus_open_system(&opened); r < 0)
    return errno_failure("reach the system bus", -r);
  const std::unique_ptr<sd_bus, CloseBus> bus(opened);
  char* version = nullptr;
  if (const int r = sd_bus_get_property_string(
          opened, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
          "org.freedesktop.systemd1.Manager", "Version", nullptr, &version);
      r < 0)
    return errno_failure("ask systemd for its version", -r);
  return std::string(std::unique_ptr<char, Free>(version).get());
}

}  // namespace

void probe_bus(HostFacts& facts) {
  facts.systemd = systemd_version();
  if (!facts.systemd) {
    facts.daemon = tl::make_unexpected(facts.systemd.error());
    return;
  }
  const auto document = fetch_status();
  if (!document) return;  // not running
  const auto status = parse_status(*document);
  if (status)
    facts.daemon = DaemonFacts{.mode = status->mode};
  else
    facts.daemon = tl::make_unexpected(status.error());
}

}  // namespace headroom::ctl::check
