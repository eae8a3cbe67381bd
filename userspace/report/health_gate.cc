// SPDX-License-Identifier: Apache-2.0
#include "report/health_gate.h"

#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace headroom::report {
namespace {

// Limit of connections that have sent nothing so far; beyond it the oldest is closed.
constexpr std::size_t kMostSilent = 256;

bool asks_for(std::string_view request, std::string_view path) {
  const std::size_t space = request.find(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view verb = request.substr(0, space);
  std::string_view rest = request.substr(space + 1);
  if ((verb != "GET" && verb != "HEAD") || !rest.starts_with(path)) return false;
  rest.remove_prefix(path.size());
  return rest.starts_with(" ") || rest.starts_with("?");
}

void send_answer(const Fd& fd, bool good, const std::string& body, bool with_body) {
  std::string text = good ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 503 Service Unavailable\r\n";
  text += "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n";
  text += "Connection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (with_body) text += body;
  // The answer fits into any socket buffer; a client that disconnected is not an error.
  static_cast<void>(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace

Result<std::unique_ptr<HealthGate>> HealthGate::open(Fd listening,
                                                     std::shared_ptr<const Heartbeat> heartbeat,
                                                     std::chrono::seconds silence, Pass pass) {
  std::unique_ptr<HealthGate> gate(
      new HealthGate(std::move(listening), std::move(heartbeat), silence, std::move(pass)));
  gate->wake_ = open_event_fd();
  if (!gate->wake_) return errno_failure("eventfd", errno);
  gate->thread_ = std::thread([self = gate.get()] { self->run(); });
  return gate;
}

HealthGate::~HealthGate() {
  if (!thread_.joinable()) return;
  signal_event_fd(wake_.get());
  thread_.join();
}

void HealthGate::accept_all() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // No descriptor is free: the connection stays in the kernel's queue, and without the pause
      // poll() would return for it at once.
      if (errno == EMFILE || errno == ENFILE) {
        constexpr int kPauseMs = 100;
        pollfd wake{wake_.get(), POLLIN, 0};
        ::poll(&wake, 1, kPauseMs);
      }
      return;
    }
    if (silent_.size() >= kMostSilent) silent_.erase(silent_.begin());
    silent_.push_back({std::move(fd), Clock::now()});
  }
}

// True if it was a complete request for a health answer, and that was sent.
bool HealthGate::answer(const Fd& fd, std::string_view request) const {
  const bool live = asks_for(request, "/livez"), ready = asks_for(request, "/readyz");
  const std::size_t end = request.find("\r\n\r\n");
  if (!heartbeat_ || (!live && !ready) || end == std::string_view::npos) return false;
  const bool is_live = heartbeat_->is_live();
  const bool good = live ? is_live : heartbeat_->is_ready();
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(heartbeat_->age()).count();
  std::string body = "ok\n";
  if (!is_live)
    body = "the loop's last turn was " + std::to_string(age) + " s ago\n";
  else if (!good)
    body = "the first sweep is not done yet\n";
  // The request is read first: closing a socket with unread bytes would reset the connection.
  std::array<char, 2048> read;
  static_cast<void>(::recv(fd.get(), read.data(), read.size(), MSG_DONTWAIT));
  send_answer(fd, good, body, !request.starts_with("HEAD"));
  ::shutdown(fd.get(), SHUT_WR);
  return true;
}

// Handles a connection that has sent data: answers a health request, and passes any other request,
// or an incomplete one, to the server.
void HealthGate::take(Fd fd) {
  std::array<char, 2048> buffer;
  const ssize_t length = ::recv(fd.get(), buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
  if (length <= 0) return;  // closed
  if (!answer(fd, {buffer.data(), static_cast<std::size_t>(length)})) pass_(std::move(fd));
}

void HealthGate::run() {
  set_thread_name("health");
  std::vector<pollfd> watched;
  for (;;) {
    watched.assign({{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}});
    for (const Silent& each : silent_)
      watched.push_back({each.fd.get(), POLLIN, 0});
    constexpr int kWhileSilentMs = 250;
    ::poll(watched.data(), watched.size(), silent_.empty() ? -1 : kWhileSilentMs);
    if (watched[0].revents) return;
    log::log_exceptions("answer a health request", [&] { serve_ready(watched); });
  }
}

// `watched`: the eventfd, the listening socket, then the connections of silent_.
void HealthGate::serve_ready(const std::vector<pollfd>& watched) {
  const auto now = Clock::now();
  std::vector<Silent> connections = std::move(silent_);
  silent_.clear();  // if this throws, the connections are closed
  for (std::size_t i = 0; i < connections.size(); ++i) {
    if (watched[i + 2].revents)
      take(std::move(connections[i].fd));
    else if (now - connections[i].since < silence_)
      silent_.push_back(std::move(connections[i]));
  }
  if (watched[1].revents) accept_all();
}

}  // namespace headroom::report
