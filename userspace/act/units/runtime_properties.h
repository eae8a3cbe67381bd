// SPDX-License-Identifier: Apache-2.0
// RuntimeProperties: properties of systemd's units until the next boot, set over a connection of
// its own to the system bus. Calls wait for systemd's answer, some seconds at most: not for the
// loop's thread. Not thread-safe.
//
// systemd keeps a unit's settings in its runtime directory after the unit is gone, where nothing
// else removes them. It also keeps a stopped unit loaded, with the values that were set, as long as
// others refer to it (an enabled service, and the slice of one), and starts it with them. A call
// whose answer did not come in time may still be waiting on the bus, and then writes such a setting
// later, also after the death of the process that made it. The bus and systemd take calls in order:
// once systemd answers another, the earlier ones are done or lost.
#pragma once

#include "act/units/runtime_settings.h"
#include "act/units/unit_properties.h"
#include "base/bus/system_bus.h"

#include <headroom/result.h>

#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <string>

struct sd_bus_message;

namespace headroom::act {

class RuntimeProperties {
 public:
  // `connection` is the name of the connection, as busctl shows it.
  explicit RuntimeProperties(std::string connection,
                             std::filesystem::path settings = kRuntimeSettings,
                             std::chrono::milliseconds timeout = kBusTimeout);

  Result<> set(const std::string& unit, const UnitProperties& properties);
  // The same for a unit that may be stopped or gone. False: systemd does not have it loaded, or
  // refuses (its file is gone, or it is masked: it cannot be started), and nothing was set.
  Result<bool> set_if_loaded(const std::string& unit, const UnitProperties& properties);

  // Removes the unit's settings of these properties, if no call can write them any more: else
  // nothing is removed, and the error is why systemd does not answer.
  Result<> remove(const std::string& unit, std::initializer_list<const char*> properties);
  // As runtime_setting().
  std::optional<std::string> setting(const std::string& unit, const std::string& property) const;

  // An earlier process may have made calls that were not answered.
  void expect_earlier_calls() { unanswered_ = true; }
  // Waits until every call that was not answered is done or lost. At once if there is none.
  Result<> finish_earlier_calls();

 private:
  Result<sd_bus*> bus();
  Result<bool> is_loaded(const std::string& unit);
  Result<> call(sd_bus_message* message, const std::string& doing);

  const std::string connection_;
  const std::filesystem::path settings_;
  const std::chrono::milliseconds timeout_;
  SystemBus bus_;
  bool unanswered_ = false;  // a call, here or of an earlier process
};

}  // namespace headroom::act
