// SPDX-License-Identifier: Apache-2.0
#include "report/dbus/dbus_service.h"

#include "base/human_readable.h"
#include "base/log/journal.h"
#include "report/dbus/polkit_check.h"
#include "report/eviction/messages.h"
#include "report/status/status_json.h"

#include <fcntl.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace headroom::report {
namespace {

std::string_view source_of(const Sources& sources) {
  const auto serves = [&](std::string_view source) {
    return std::find(sources.begin(), sources.end(), source) != sources.end();
  };
  if (serves("bpf")) return serves("files") ? "hybrid" : "bpf";
  return serves("files") ? "files" : "";
}

}  // namespace

BusProperties properties_of(const NodeView& node) {
  return {name(node.mode), node.conditions, source_of(node.sources)};
}

std::vector<const char*> changed_properties(const BusProperties& before, const BusProperties& now) {
  std::vector<const char*> names;
  if (before.mode != now.mode) names.push_back("Mode");
  for (std::size_t i = 0; i < kConditions; ++i)
    if (before.conditions[i] != now.conditions[i]) names.push_back(kConditionNames[i].data());
  if (before.source != now.source) names.push_back("Source");
  return names;
}

struct DbusService::Connection {
  DbusSetup setup;
  sd_bus* bus = nullptr;
  BusProperties announced{};
  // Closed without a flush, which would block the thread if the bus no longer reads.
  ~Connection() { sd_bus_close_unref(bus); }
};

namespace {

// Timeout of a call: long enough for a busy bus, short enough for an operator to wait.
constexpr std::uint64_t kTimeoutUsec = 5'000'000;

// sd-bus is C: no exception may pass through it.
template <class Body>
int catch_exceptions(Body&& body) {
  int result = -EIO;  // if it throws
  log::log_exceptions("answer a D-Bus call", [&] { result = body(); });
  return result;
}

const DbusSetup& setup_of(void* user) {
  return *static_cast<const DbusSetup*>(user);
}

int handle_status(sd_bus_message* call, void* user, sd_bus_error*) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    return sd_bus_reply_method_return(
        call, "s", status_text(*setup.views, setup.qos_of, setup.kubernetes).c_str());
  });
}

// Replies with the answer, or with the error Refused, whose message is the reason.
int reply(sd_bus_message* call, const Result<std::string>& answer, sd_bus_error* error) {
  if (!answer) return sd_bus_error_set(error, kBusRefused, printable(answer.error().what).c_str());
  return sd_bus_reply_method_return(call, "s", answer->c_str());
}

int refuse_too_large(sd_bus_error* error, const char* what) {
  return sd_bus_error_setf(error, kBusRefused, "%s too large: at most %zu bytes are accepted", what,
                           kMaxRequestBytes);
}

int refuse_unavailable(sd_bus_error* error, const char* method) {
  return sd_bus_error_setf(error, SD_BUS_ERROR_NOT_SUPPORTED, "%s is not available in this program",
                           method);
}

int answer_admission(sd_bus_message* call, const char* method, const AdmitFunction& admit,
                     sd_bus_error* error) {
  return catch_exceptions([&] {
    const char* manifest = nullptr;
    if (int r = sd_bus_message_read(call, "s", &manifest); r < 0) return r;
    if (!admit) return refuse_unavailable(error, method);
    if (std::strlen(manifest) > kMaxRequestBytes) return refuse_too_large(error, "the manifest is");
    return reply(call, admit(manifest), error);
  });
}

int handle_admit(sd_bus_message* call, void* user, sd_bus_error* error) {
  return answer_admission(call, "Admit", setup_of(user).admit, error);
}

int handle_admit_to_start(sd_bus_message* call, void* user, sd_bus_error* error) {
  return answer_admission(call, "AdmitToStart", setup_of(user).admit_to_start, error);
}

int handle_config(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    if (!setup.config) return refuse_unavailable(error, "Config");
    return reply(call, setup.config(), error);
  });
}

int handle_events(sd_bus_message* call, void* user, sd_bus_error*) {
  return catch_exceptions([&] {
    std::uint64_t after = 0;
    if (int r = sd_bus_message_read(call, "t", &after); r < 0) return r;
    return sd_bus_reply_method_return(call, "s", setup_of(user).views->events.json(after).c_str());
  });
}

int read_strings(sd_bus_message* message, std::vector<std::string>& strings) {
  if (int r = sd_bus_message_enter_container(message, 'a', "s"); r < 0) return r;
  const char* text = nullptr;
  int r = 0;
  while ((r = sd_bus_message_read(message, "s", &text)) > 0)
    strings.emplace_back(text);
  return r < 0 ? r : sd_bus_message_exit_container(message);
}

// Whether the next list of strings is within kMaxRequestBytes. Copies nothing, and rewinds the
// message to its start.
int strings_fit(sd_bus_message* message, bool& fit) {
  constexpr std::size_t kOverhead = sizeof(std::string);  // per string, even if it is empty
  std::size_t bytes = 0;
  if (int r = sd_bus_message_enter_container(message, 'a', "s"); r < 0) return r;
  const char* text = nullptr;
  int r = 0;
  while (bytes <= kMaxRequestBytes && (r = sd_bus_message_read(message, "s", &text)) > 0)
    bytes += std::strlen(text) + kOverhead;
  if (r < 0) return r;
  fit = bytes <= kMaxRequestBytes;
  return sd_bus_message_rewind(message, 1);
}

int taint(const DbusSetup& setup, sd_bus_message* call, sd_bus_error* error) {
  std::vector<std::string> edits;
  if (int r = read_strings(call, edits); r < 0) return r;
  int overwrite = 0;
  if (int r = sd_bus_message_read(call, "b", &overwrite); r < 0) return r;
  if (!setup.taint) return refuse_unavailable(error, "Taint");
  return reply(call, setup.taint(edits, overwrite != 0), error);
}

int handle_taint(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    bool fit = false;
    if (int r = strings_fit(call, fit); r < 0) return r;
    if (!fit) return refuse_too_large(error, "the list of edits is");
    return require_authorization(
        call, setup.allowed_uid, "io.headroom.Headroom1.taint",
        [&setup](sd_bus_message* authorized, sd_bus_error* why) {
          return taint(setup, authorized, why);
        },
        error);
  });
}

int handle_cpus(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    if (!setup.cpus) return refuse_unavailable(error, "Cpus");
    return reply(call, setup.cpus(), error);
  });
}

int handle_memory(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    if (!setup.memory) return refuse_unavailable(error, "Memory");
    return reply(call, setup.memory(), error);
  });
}

// Like reply(), for a call whose handler has already returned.
int send_async_reply(sd_bus_message* call, const Result<std::string>& answer) {
  if (answer) return sd_bus_reply_method_return(call, "s", answer->c_str());
  return sd_bus_reply_method_errorf(call, kBusRefused, "%s",
                                    printable(answer.error().what).c_str());
}

int repack(const DbusSetup& setup, sd_bus_message* call, sd_bus_error* error) {
  int dry_run = 0;
  if (int r = sd_bus_message_read(call, "b", &dry_run); r < 0) return r;
  if (!setup.repack) return refuse_unavailable(error, "Repack");
  return reply_async(call, setup.repack(dry_run != 0), send_async_reply);
}

int handle_repack(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    return require_authorization(
        call, setup.allowed_uid, "io.headroom.Headroom1.repack",
        [&setup](sd_bus_message* authorized, sd_bus_error* why) {
          return repack(setup, authorized, why);
        },
        error);
  });
}

int handle_record(sd_bus_message* call, void* user, sd_bus_error* error) {
  return catch_exceptions([&] {
    const DbusSetup& setup = setup_of(user);
    int pipe = -1;
    std::uint64_t seconds = 0;
    if (int r = sd_bus_message_read(call, "ht", &pipe, &seconds); r < 0) return r;
    if (!setup.record) return refuse_unavailable(error, "Record");
    const int ours = ::fcntl(pipe, F_DUPFD_CLOEXEC, 0);  // the message closes the original
    if (ours < 0) return -errno;
    constexpr std::uint64_t kMax = 1U << 30;
    return reply(call, setup.record(ours, std::chrono::seconds(std::min(seconds, kMax))), error);
  });
}

int get_version(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void*,
                sd_bus_error*) {
  return sd_bus_message_append(reply, "s", HEADROOM_VERSION);
}

BusProperties properties_now(const DbusSetup& setup) {
  const auto node = setup.views->node.latest();
  return node ? properties_of(*node) : BusProperties{};
}

// The views are string literals, so each is null-terminated.
const char* text(std::string_view literal) {
  return literal.empty() ? "" : literal.data();
}

int get_mode(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* user,
             sd_bus_error*) {
  return catch_exceptions(
      [&] { return sd_bus_message_append(reply, "s", text(properties_now(setup_of(user)).mode)); });
}

int get_source(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* user,
               sd_bus_error*) {
  return catch_exceptions([&] {
    return sd_bus_message_append(reply, "s", text(properties_now(setup_of(user)).source));
  });
}

int get_condition(sd_bus*, const char*, const char*, const char* property, sd_bus_message* reply,
                  void* user, sd_bus_error*) {
  return catch_exceptions([&] {
    const BusProperties now = properties_now(setup_of(user));
    for (std::size_t i = 0; i < kConditions; ++i)
      if (kConditionNames[i] == property)
        return sd_bus_message_append(reply, "b", now.conditions[i] ? 1 : 0);
    return -ENOENT;
  });
}

const sd_bus_vtable kVtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Status", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), handle_status,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Admit", SD_BUS_ARGS("s", manifest), SD_BUS_RESULT("s", json),
                            handle_admit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Cpus", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), handle_cpus,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Memory", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), handle_memory,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Config", SD_BUS_NO_ARGS, SD_BUS_RESULT("s", json), handle_config,
                            SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Events", SD_BUS_ARGS("t", after), SD_BUS_RESULT("s", json),
                            handle_events, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Taint", SD_BUS_ARGS("as", edits, "b", overwrite),
                            SD_BUS_RESULT("s", json), handle_taint, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD_WITH_ARGS("Repack", SD_BUS_ARGS("b", dry_run), SD_BUS_RESULT("s", json),
                            handle_repack, SD_BUS_VTABLE_UNPRIVILEGED),
    // Without SD_BUS_VTABLE_UNPRIVILEGED, the policy of the bus and sd-bus refuse unprivileged
    // users.
    SD_BUS_METHOD_WITH_ARGS("AdmitToStart", SD_BUS_ARGS("s", manifest), SD_BUS_RESULT("s", json),
                            handle_admit_to_start, 0),
    SD_BUS_METHOD_WITH_ARGS("Record", SD_BUS_ARGS("h", pipe, "t", seconds),
                            SD_BUS_RESULT("s", json), handle_record, 0),
    SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Mode", "s", get_mode, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Source", "s", get_source, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("MemoryPressure", "b", get_condition, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("DiskPressure", "b", get_condition, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("PIDPressure", "b", get_condition, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("CPUPressure", "b", get_condition, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_SIGNAL_WITH_ARGS(
        "Evicted", SD_BUS_ARGS("s", pod, "s", uid, "s", reason, "s", message, "t", decided_at_ns),
        0),
    SD_BUS_VTABLE_END};

int connect(sd_bus*& bus, sd_event* event, DbusSetup& setup) {
  if (int r = sd_bus_open_system_with_description(&bus, "headroomd"); r < 0) return r;
  if (int r = sd_bus_set_method_call_timeout(bus, kTimeoutUsec); r < 0) return r;
  if (int r = sd_bus_set_exit_on_disconnect(bus, 0); r < 0) return r;
  if (int r = sd_bus_add_object_vtable(bus, nullptr, kBusPath, kBusInterface, kVtable, &setup);
      r < 0)
    return r;
  if (int r = sd_bus_request_name(bus, kBusName, 0); r < 0) return r;
  return sd_bus_attach_event(bus, event, SD_EVENT_PRIORITY_NORMAL);
}

}  // namespace

EvictedSignal evicted_signal_of(const Eviction& eviction) {
  const Decision& decision = eviction.decision;
  return {
      .pod = pod_name(*decision.pod),
      .uid = decision.pod->uid,
      .reason = std::string(cause_name(decision.reason)),
      .message = eviction.message,
      .decided_at_ns = static_cast<std::uint64_t>(decision.decided_at.time_since_epoch().count())};
}

DbusService::DbusService(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

DbusService::~DbusService() = default;

Result<std::unique_ptr<DbusService>> DbusService::open(sd_event* event, DbusSetup setup) {
  auto connection = std::make_unique<Connection>();
  connection->setup = std::move(setup);
  if (int r = connect(connection->bus, event, connection->setup); r < 0)
    return errno_failure("own " + std::string(kBusName) + " on the system bus", -r);
  return std::unique_ptr<DbusService>(new DbusService(std::move(connection)));
}

Result<> DbusService::evicted(const EvictedSignal& signal) {
  const int r = sd_bus_emit_signal(connection_->bus, kBusPath, kBusInterface, "Evicted", "sssst",
                                   signal.pod.c_str(), signal.uid.c_str(), signal.reason.c_str(),
                                   signal.message.c_str(), signal.decided_at_ns);
  if (r < 0) return errno_failure("emit Evicted for " + signal.pod, -r);
  return {};
}

Result<> DbusService::emit_properties_changed() {
  const BusProperties now = properties_now(connection_->setup);
  std::vector<const char*> names = changed_properties(connection_->announced, now);
  connection_->announced = now;
  if (names.empty()) return {};
  std::vector<char*> list;
  for (const char* name : names)
    list.push_back(const_cast<char*>(name));  // sd-bus takes char** and changes nothing
  list.push_back(nullptr);
  const int r =
      sd_bus_emit_properties_changed_strv(connection_->bus, kBusPath, kBusInterface, list.data());
  if (r < 0) return errno_failure("emit PropertiesChanged", -r);
  return {};
}

bool DbusService::connected() const {
  return sd_bus_is_open(connection_->bus) > 0;
}

}  // namespace headroom::report
