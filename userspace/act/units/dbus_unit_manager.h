// SPDX-License-Identifier: Apache-2.0
// DbusUnitManager: the UnitManager over the system bus. Used only on the thread that runs
// `event`.
#pragma once

#include "act/units/unit_manager.h"
#include "act/units/unit_properties.h"

#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace headroom::act {

// Transient slices: systemd removes them when they are stopped.

// Both wait for systemd's answer, not for the unit.
Result<> start_transient_slice(const std::string& unit, const UnitProperties& properties);
Result<> stop_unit(const std::string& unit);

}  // namespace headroom::act

// UnitProperties as systemd's calls take them: a(sv).

struct sd_bus_message;

namespace headroom::act {

// Negative: an errno of sd-bus.
int append(sd_bus_message* message, const UnitProperties& properties);

}  // namespace headroom::act

struct sd_event;

namespace headroom::act {

class DbusUnitManager final : public UnitManager {
 public:
  struct Counts {
    std::uint64_t calls = 0, failed = 0;
    std::chrono::nanoseconds waited{0};  // for systemd's answers, summed over all calls
  };
  // `on_change` is called when systemd has reloaded, or a watched unit was removed or changed.
  static Result<std::unique_ptr<DbusUnitManager>> open(sd_event* event,
                                                       std::function<void()> on_change);
  // The results of calls in progress are never delivered.
  ~DbusUnitManager() override;
  DbusUnitManager(const DbusUnitManager&) = delete;
  DbusUnitManager& operator=(const DbusUnitManager&) = delete;

  void set(const std::string& unit, const UnitProperties& properties, Persistence persistence,
           Done done) override;
  void start(const std::string& unit, Done done) override;
  // on_change is called when this unit is removed or changed.
  void watch(const std::string& unit);

  // False after the connection was lost: destroy this and open another.
  bool connected() const;
  Counts counts() const;

 private:
  struct Connection;
  explicit DbusUnitManager(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace headroom::act
