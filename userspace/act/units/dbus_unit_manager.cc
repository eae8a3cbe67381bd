// SPDX-License-Identifier: Apache-2.0
#include "act/units/dbus_unit_manager.h"

#include "base/bus/bus_message.h"
#include "base/bus/system_bus.h"
#include "base/log/journal.h"

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <functional>
#include <list>
#include <memory>
#include <utility>

namespace headroom::act {
namespace {

struct BusError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~BusError() { sd_bus_error_free(&error); }
};

Result<> call(const std::string& doing, const char* method,
              const std::function<int(sd_bus_message*)>& append) {
  const auto bus = open_system_bus("headroom-units", kSystemdTimeout);
  if (!bus) return tl::make_unexpected(bus.error());
  sd_bus* opened = bus->get();
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

namespace {

int append(sd_bus_message* message, const UnitProperty& property) {
  struct Variant {
    sd_bus_message* message;
    int operator()(bool value) const { return sd_bus_message_append(message, "v", "b", value); }
    int operator()(std::uint64_t value) const {
      return sd_bus_message_append(message, "v", "t", value);
    }
    int operator()(const std::string& value) const {
      return sd_bus_message_append(message, "v", "s", value.c_str());
    }
    int operator()(const std::vector<std::uint8_t>& value) const {
      int r = sd_bus_message_open_container(message, 'v', "ay");
      if (r >= 0) r = sd_bus_message_append_array(message, 'y', value.data(), value.size());
      return r < 0 ? r : sd_bus_message_close_container(message);
    }
  };
  int r = sd_bus_message_open_container(message, 'r', "sv");
  if (r >= 0) r = sd_bus_message_append(message, "s", property.name.c_str());
  if (r >= 0) r = std::visit(Variant{message}, property.value);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

}  // namespace

int append(sd_bus_message* message, const UnitProperties& properties) {
  int r = sd_bus_message_open_container(message, 'a', "(sv)");
  for (const UnitProperty& property : properties)
    if (r >= 0) r = append(message, property);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSystemd = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";
constexpr const char* kUnitPath = "/org/freedesktop/systemd1/unit";
// The limit for a call: systemd answers late while it reloads its unit files.
constexpr std::uint64_t kTimeoutUsec = 20'000'000;

}  // namespace

struct DbusUnitManager::Connection {
  // A call without an answer so far. sd-bus returns the pointer to it.
  struct Call {
    Connection* connection = nullptr;
    std::string doing;
    Done done;
    Clock::time_point sent = Clock::now();
    std::list<Call>::iterator self{};
  };

  sd_bus* bus = nullptr;
  std::function<void()> on_change;
  std::list<Call> pending_calls;
  Counts counts;

  // Closed without a flush: a bus that does not read must not block the thread. Open calls are
  // dropped first, since closing the connection answers them.
  ~Connection() {
    for (Call& call : pending_calls)
      call.done = nullptr;
    sd_bus_close_unref(bus);
  }

  void send(BusMessage message, std::string doing, Done done);
  void failed(const std::string& doing, int code, const Done& done);
  static int on_reply(sd_bus_message* reply, void* user, sd_bus_error*);
  static int on_signal(sd_bus_message*, void* user, sd_bus_error*) {
    log::log_exceptions("a signal of systemd",
                        [user] { static_cast<Connection*>(user)->on_change(); });
    return 0;
  }
};

void DbusUnitManager::Connection::failed(const std::string& doing, int code, const Done& done) {
  ++counts.failed;
  if (done) done(errno_failure(doing, code));
}

int DbusUnitManager::Connection::on_reply(sd_bus_message* reply, void* user, sd_bus_error*) {
  auto* call = static_cast<Call*>(user);
  Connection& connection = *call->connection;
  const Done done = std::move(call->done);
  const std::string doing = std::move(call->doing);
  connection.counts.waited += Clock::now() - call->sent;
  connection.pending_calls.erase(call->self);
  const sd_bus_error* error = sd_bus_message_get_error(reply);
  if (error) ++connection.counts.failed;
  if (!done) return 0;
  log::log_exceptions("an answer of systemd", [&] {
    if (error)
      done(failure(doing + ": " + (error->message ? error->message : error->name),
                   sd_bus_error_get_errno(error)));
    else
      done({});
  });
  return 0;
}

void DbusUnitManager::Connection::send(BusMessage message, std::string doing, Done done) {
  ++counts.calls;
  Call& call = pending_calls.emplace_back(
      Call{.connection = this, .doing = std::move(doing), .done = std::move(done)});
  call.self = std::prev(pending_calls.end());
  const int r =
      sd_bus_call_async(bus, nullptr, message.get(), &Connection::on_reply, &call, kTimeoutUsec);
  if (r >= 0) return;
  const Call refused = std::move(call);
  pending_calls.pop_back();
  failed(refused.doing, -r, refused.done);
}

DbusUnitManager::DbusUnitManager(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
DbusUnitManager::~DbusUnitManager() = default;

Result<std::unique_ptr<DbusUnitManager>> DbusUnitManager::open(sd_event* event,
                                                               std::function<void()> on_change) {
  auto connection = std::make_unique<Connection>();
  connection->on_change = std::move(on_change);
  int r = sd_bus_open_system_with_description(&connection->bus, "headroomd-slices");
  sd_bus* bus = connection->bus;
  if (r >= 0) r = sd_bus_set_exit_on_disconnect(bus, 0);
  if (r >= 0) r = sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
  // systemd sends signals only to subscribers.
  if (r >= 0)
    r = sd_bus_call_method_async(bus, nullptr, kSystemd, kManagerPath, kManager, "Subscribe",
                                 nullptr, nullptr, "");
  if (r >= 0)
    r = sd_bus_match_signal_async(bus, nullptr, kSystemd, kManagerPath, kManager, "Reloading",
                                  &Connection::on_signal, nullptr, connection.get());
  if (r < 0) return errno_failure("reach systemd on the system bus", -r);
  return std::unique_ptr<DbusUnitManager>(new DbusUnitManager(std::move(connection)));
}

void DbusUnitManager::set(const std::string& unit, const UnitProperties& properties,
                          Persistence persistence, Done done) {
  const std::string doing = "set the properties of " + unit;
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(connection_->bus, &made, kSystemd, kManagerPath, kManager,
                                         "SetUnitProperties");
  BusMessage message(made);
  const int runtime = persistence == Persistence::kUntilReboot ? 1 : 0;
  if (r >= 0) r = sd_bus_message_append(made, "sb", unit.c_str(), runtime);
  if (r >= 0) r = append(made, properties);
  if (r < 0) return connection_->failed(doing, -r, done);
  connection_->send(std::move(message), doing, std::move(done));
}

void DbusUnitManager::start(const std::string& unit, Done done) {
  const std::string doing = "start " + unit;
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(connection_->bus, &made, kSystemd, kManagerPath, kManager,
                                         "StartUnit");
  BusMessage message(made);
  if (r >= 0) r = sd_bus_message_append(made, "ss", unit.c_str(), "replace");
  if (r < 0) return connection_->failed(doing, -r, done);
  connection_->send(std::move(message), doing, std::move(done));
}

void DbusUnitManager::watch(const std::string& unit) {
  const std::string gone = "type='signal',sender='" + std::string(kSystemd) + "',interface='" +
                           kManager + "',member='UnitRemoved',arg0='" + unit + "'";
  sd_bus_add_match_async(connection_->bus, nullptr, gone.c_str(), &Connection::on_signal, nullptr,
                         connection_.get());
  char* path = nullptr;
  if (sd_bus_path_encode(kUnitPath, unit.c_str(), &path) < 0) return;
  sd_bus_match_signal_async(connection_->bus, nullptr, kSystemd, path,
                            "org.freedesktop.DBus.Properties", "PropertiesChanged",
                            &Connection::on_signal, nullptr, connection_.get());
  std::free(path);
}

bool DbusUnitManager::connected() const {
  return sd_bus_is_open(connection_->bus) > 0;
}

DbusUnitManager::Counts DbusUnitManager::counts() const {
  return connection_->counts;
}

}  // namespace headroom::act
