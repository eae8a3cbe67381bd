// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/dbus_client.h"

#include "base/bus/system_bus.h"
#include "base/file_io.h"
#include "report/dbus/dbus_service.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <systemd/sd-bus.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace headroom::ctl {
namespace {

constexpr timeval kTimeout{.tv_sec = 5, .tv_usec = 0};
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

struct AddressFree {
  void operator()(addrinfo* address) const { ::freeaddrinfo(address); }
};

Result<Fd> connect_to(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return failure("HEADROOM_HTTP: expected HOST:PORT");
  std::string host = address.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
    return failure("HEADROOM_HTTP: no address and port in " + address);
  const std::unique_ptr<addrinfo, AddressFree> owned(found);
  Fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno_failure("make a socket", errno);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0)
    return errno_failure("connect to " + address, errno);
  return fd;
}

// Reads until the server closes the connection.
Result<std::string> read_all(const Fd& fd) {
  std::string text;
  std::array<char, 65'536> buffer{};
  while (text.size() <= kMaxBytes) {
    const ssize_t bytes = ::read(fd.get(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_failure("read the status over HTTP", errno);
    if (bytes == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  return failure("read the status over HTTP: the answer is too long");
}

std::optional<std::size_t> content_length(std::string_view headers) {
  constexpr std::string_view kName = "\r\nContent-Length: ";
  const std::size_t at = headers.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view value = headers.substr(at + kName.size());
  std::size_t length = 0;
  const auto [_, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  return error == std::errc() ? std::optional(length) : std::nullopt;
}

Result<std::string> body_of(const std::string& answer) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t end = answer.find(kEnd);
  // "HTTP/1.1 200 OK"
  if (end == std::string::npos || !answer.starts_with("HTTP/1.") || answer.substr(9, 3) != "200")
    return failure("read the status over HTTP: " + answer.substr(0, answer.find('\r')));
  std::string body = answer.substr(end + kEnd.size());
  if (content_length(std::string_view(answer).substr(0, end)).value_or(body.size()) != body.size())
    return failure("read the status over HTTP: the answer is cut off");
  return body;
}

}  // namespace

std::string http_address() {
  const char* const set = std::getenv("HEADROOM_HTTP");
  return set ? set : "127.0.0.1:9750";
}

namespace {

Result<std::string> get_over_http(const std::string& address, const std::string& path) {
  const auto fd = connect_to(address);
  if (!fd) return tl::make_unexpected(fd.error());
  // HTTP/1.0: the server closes the connection and does not send chunks.
  const std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + address + "\r\n\r\n";
  if (::send(fd->get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return errno_failure("ask " + address + " for " + path, errno);
  const auto answer = read_all(*fd);
  return answer ? body_of(*answer) : answer;
}

}  // namespace

Result<std::string> fetch_status_over_http(const std::string& address) {
  return get_over_http(address, "/api/status");
}

namespace {

using Kind = CallError::Kind;

constexpr std::uint64_t kTimeoutUsec = 5'000'000;
// Polkit may ask for a password.
constexpr std::uint64_t kPolkitTimeoutUsec = 120'000'000;

struct MessageUnref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, MessageUnref>;

struct BusError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~BusError() { sd_bus_error_free(&error); }
  bool is(const char* name) const { return sd_bus_error_has_name(&error, name) > 0; }
};

tl::unexpected<CallError> unreachable(const std::string& doing, int code) {
  return tl::make_unexpected(CallError{Kind::kUnreachable, doing + ": " + std::strerror(code)});
}

CallError call_error_from(const BusError& error, const char* method, int code) {
  if (error.is(SD_BUS_ERROR_SERVICE_UNKNOWN) || error.is(SD_BUS_ERROR_NAME_HAS_NO_OWNER))
    return {Kind::kUnreachable,
            "headroomd is not running (io.headroom.Headroom1 has no owner on the system bus); see "
            "systemctl status headroomd"};
  if (error.is(report::kBusRefused)) return {Kind::kRefused, error.error.message};
  if (error.is(SD_BUS_ERROR_ACCESS_DENIED))
    return {Kind::kForbidden,
            std::string("only root and users allowed by polkit may call headroomd's ") + method};
  return {Kind::kUnreachable,
          std::string("ask headroomd for ") + method + ": " +
              (error.error.message ? error.error.message : std::strerror(code))};
}

using Append = std::function<int(sd_bus_message*)>;

// Calls a method that returns one string.
CallResult call_method(const char* method, const Append& append,
                       std::uint64_t timeout = kTimeoutUsec) {
  const auto bus = open_system_bus("headroomctl");
  if (!bus) return unreachable("cannot reach the system bus", bus.error().code);
  sd_bus* opened = bus->get();
  sd_bus_message* made = nullptr;
  int r = sd_bus_message_new_method_call(opened, &made, report::kBusName, report::kBusPath,
                                         report::kBusInterface, method);
  const Message request(made);
  if (r >= 0) r = append(made);
  if (r < 0) return unreachable("build the request to headroomd", -r);
  BusError error;
  sd_bus_message* answered = nullptr;
  sd_bus_message_set_allow_interactive_authorization(made, 1);
  r = sd_bus_call(opened, made, timeout, &error.error, &answered);
  const Message answer(answered);
  if (r < 0) return tl::make_unexpected(call_error_from(error, method, -r));
  const char* document = nullptr;
  r = sd_bus_message_read(answered, "s", &document);
  if (r < 0) return unreachable("read headroomd's answer", -r);
  return std::string(document);
}

int append_edits(sd_bus_message* message, const std::vector<std::string>& edits, bool overwrite) {
  int r = sd_bus_message_open_container(message, 'a', "s");
  for (const std::string& edit : edits)
    if (r >= 0) r = sd_bus_message_append(message, "s", edit.c_str());
  if (r >= 0) r = sd_bus_message_close_container(message);
  return r < 0 ? r : sd_bus_message_append(message, "b", overwrite ? 1 : 0);
}

}  // namespace

namespace {

// The answer of a method that can be read over HTTP as well.
Result<std::string> or_over_http(CallResult answer, const std::string& path) {
  if (answer) return std::move(*answer);
  const std::string address = http_address();
  if (answer.error().kind == Kind::kUnreachable && !address.empty())
    if (auto document = get_over_http(address, path)) return document;
  return failure(std::move(answer.error().what));
}

}  // namespace

Result<std::string> fetch_status() {
  return or_over_http(call_method("Status", [](sd_bus_message*) { return 0; }), "/api/status");
}

Result<std::string> fetch_events(std::uint64_t after) {
  return or_over_http(call_method("Events",
                                  [&](sd_bus_message* message) {
                                    return sd_bus_message_append(message, "t", after);
                                  }),
                      "/api/events?after=" + std::to_string(after));
}

CallResult fetch_config() {
  return call_method("Config", [](sd_bus_message*) { return 0; });
}

namespace {

CallResult call_with_manifest(const char* method, const std::string& manifest) {
  return call_method(method, [&](sd_bus_message* message) {
    return sd_bus_message_append(message, "s", manifest.c_str());
  });
}

}  // namespace

CallResult check_admission(const std::string& manifest) {
  return call_with_manifest("Admit", manifest);
}

CallResult request_admission(const std::string& manifest) {
  return call_with_manifest("AdmitToStart", manifest);
}

CallResult fetch_cpus() {
  return call_method("Cpus", [](sd_bus_message*) { return 0; });
}

CallResult fetch_memory() {
  return call_method("Memory", [](sd_bus_message*) { return 0; });
}

CallResult repack_cpus(bool dry_run) {
  return call_method(
      "Repack",
      [&](sd_bus_message* message) { return sd_bus_message_append(message, "b", dry_run ? 1 : 0); },
      kPolkitTimeoutUsec);
}

CallResult edit_taints(const std::vector<std::string>& edits, bool overwrite) {
  return call_method(
      "Taint", [&](sd_bus_message* message) { return append_edits(message, edits, overwrite); },
      kPolkitTimeoutUsec);
}

CallResult start_recording(int pipe, std::chrono::seconds length) {
  return call_method("Record", [&](sd_bus_message* message) {
    return sd_bus_message_append(message, "ht", pipe, static_cast<std::uint64_t>(length.count()));
  });
}

}  // namespace headroom::ctl
