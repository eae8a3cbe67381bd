// SPDX-License-Identifier: Apache-2.0
#include "act/units/runtime_properties.h"

#include "act/units/dbus_unit_manager.h"
#include "base/bus/bus_message.h"

#include <systemd/sd-bus.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace headroom::act {
namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kObject = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kNoSuchUnit = "org.freedesktop.systemd1.NoSuchUnit";

// Of a call that was sent: systemd may still get it.
bool is_without_answer(int error) {
  constexpr std::array kErrors{ETIMEDOUT, ECONNRESET, ENOTCONN, EPIPE, ESHUTDOWN};
  return std::ranges::find(kErrors, error) != kErrors.end();
}

// The bus that had the calls is gone, and they with it.
bool is_without_bus(int error) {
  return error == ENOENT || error == ECONNREFUSED;
}

}  // namespace

RuntimeProperties::RuntimeProperties(std::string connection, std::filesystem::path settings,
                                     std::chrono::milliseconds timeout)
    : connection_(std::move(connection)), settings_(std::move(settings)), timeout_(timeout) {}

Result<sd_bus*> RuntimeProperties::bus() {
  if (bus_ && sd_bus_is_open(bus_.get()) > 0) return bus_.get();
  bus_.reset();
  auto opened = open_system_bus(connection_.c_str(), timeout_);
  if (!opened) return tl::make_unexpected(opened.error());
  bus_ = std::move(*opened);
  return bus_.get();
}

Result<> RuntimeProperties::call(sd_bus_message* message, const std::string& doing) {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  const int r = sd_bus_call(bus_.get(), message, 0, &error, nullptr);
  // An answer to this call is one to all before it.
  unanswered_ = r < 0 && (is_without_answer(-r) || unanswered_);
  Result<> done;
  if (r < 0)
    done = failure(doing + ": " + (error.message ? error.message : "no answer"),
                   sd_bus_error_has_name(&error, kNoSuchUnit) ? ENOENT : -r);
  sd_bus_error_free(&error);
  return done;
}

Result<> RuntimeProperties::set(const std::string& unit, const UnitProperties& properties) {
  const auto connection = bus();
  if (!connection) return tl::make_unexpected(connection.error());
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(*connection, &raw, kService, kObject, kManager,
                                         "SetUnitProperties");
  const BusMessage message(raw);
  if (r >= 0) r = sd_bus_message_append(raw, "sb", unit.c_str(), 1);
  if (r >= 0) r = append(raw, properties);
  std::string doing = "set";
  for (const UnitProperty& property : properties)
    doing += ' ' + property.name;
  doing += " of " + unit;
  return r < 0 ? errno_failure(doing, -r) : call(raw, doing);
}

Result<bool> RuntimeProperties::is_loaded(const std::string& unit) {
  const auto connection = bus();
  if (!connection) return tl::make_unexpected(connection.error());
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(*connection, &raw, kService, kObject, kManager, "GetUnit");
  const BusMessage message(raw);
  if (r >= 0) r = sd_bus_message_append(raw, "s", unit.c_str());
  const std::string doing = "look for " + unit;
  const Result<> found = r < 0 ? errno_failure(doing, -r) : call(raw, doing);
  if (!found && found.error().code != ENOENT) return tl::make_unexpected(found.error());
  return found.has_value();
}

Result<bool> RuntimeProperties::set_if_loaded(const std::string& unit,
                                              const UnitProperties& properties) {
  const auto loaded = is_loaded(unit);
  if (!loaded || !*loaded) return loaded;
  if (auto done = set(unit, properties); !done) {
    const bool is_refused = !unanswered_ && bus_ && sd_bus_is_open(bus_.get()) > 0;
    return is_refused ? Result<bool>(false) : tl::make_unexpected(done.error());
  }
  return true;
}

Result<> RuntimeProperties::finish_earlier_calls() {
  if (!unanswered_) return {};
  const auto connection = bus();
  if (!connection) {
    unanswered_ = !is_without_bus(connection.error().code);
    return unanswered_ ? Result<>(tl::make_unexpected(connection.error())) : Result<>{};
  }
  sd_bus_message* raw = nullptr;
  const int r = sd_bus_message_new_method_call(*connection, &raw, kService, kObject,
                                               "org.freedesktop.DBus.Peer", "Ping");
  const BusMessage message(raw);
  const std::string doing = "wait for systemd's answer";
  return r < 0 ? errno_failure(doing, -r) : call(raw, doing);
}

Result<> RuntimeProperties::remove(const std::string& unit,
                                   std::initializer_list<const char*> properties) {
  if (auto finished = finish_earlier_calls(); !finished) return finished;
  remove_runtime_settings(settings_, unit, properties);
  return {};
}

std::optional<std::string> RuntimeProperties::setting(const std::string& unit,
                                                      const std::string& property) const {
  return runtime_setting(settings_, unit, property);
}

}  // namespace headroom::act
