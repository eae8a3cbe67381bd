// SPDX-License-Identifier: Apache-2.0
// UnitBus: Units over the system bus. Lives on the thread that runs `event`.
#pragma once

#include "act/units.h"

#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct sd_event;

namespace headroom::act {

class UnitBus final : public Units {
 public:
  struct Counts {
    std::uint64_t calls = 0, failed = 0;
    std::chrono::nanoseconds waited{0};  // for systemd's answers, call by call
  };
  // `on_change`: systemd has read its files again, or one of the watched units is gone or changed.
  static Result<std::unique_ptr<UnitBus>> open(sd_event* event, std::function<void()> on_change);
  // Calls that are under way are never told of.
  ~UnitBus() override;
  UnitBus(const UnitBus&) = delete;
  UnitBus& operator=(const UnitBus&) = delete;

  void set(const std::string& unit, const UnitProperties& properties, Lasting lasting,
           Done done) override;
  void start(const std::string& unit, Done done) override;
  // on_change is called when this unit goes or changes.
  void watch(const std::string& unit);

  // False once the bus has gone away: close this and open another.
  bool connected() const;
  Counts counts() const;

 private:
  struct Connection;
  explicit UnitBus(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace headroom::act
