// SPDX-License-Identifier: Apache-2.0
// SmallServer: answers HTTP on a port of this machine as a test's script says, word for word: what
// a well-behaved server would never send can be sent as well.
#pragma once

#include "base/file_io.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace headroom::test {

class SmallServer {
 public:
  struct Act {
    std::string bytes;   // sent as they are
    bool reset = false;  // then the connection is reset rather than closed
    std::chrono::milliseconds delay{0};
  };
  // What to do about a request, from its first line to the end of its body.
  using Script = std::function<Act(const std::string& request)>;

  explicit SmallServer(Script script) : script_(std::move(script)) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_.get(), 16);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~SmallServer() {
    stop_ = true;
    thread_.join();
  }
  SmallServer(const SmallServer&) = delete;
  SmallServer& operator=(const SmallServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<std::string> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static Act answer(int status, const std::string& body, const std::string& headers = "") {
    return {.bytes = "HTTP/1.1 " + std::to_string(status) + " Status\r\n" + headers +
                     "Content-Length: " + std::to_string(body.size()) +
                     "\r\nConnection: close\r\n\r\n" + body};
  }

 private:
  void serve() {
    while (!stop_) {
      pollfd ready{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer) talk(peer.get());
    }
  }

  void talk(int peer) {
    const std::string request = read_request(peer);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const Act act = script_(request);
    for (auto left = act.delay; left.count() > 0 && !stop_; left -= std::chrono::milliseconds(20))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    [[maybe_unused]] const ssize_t sent =
        ::send(peer, act.bytes.data(), act.bytes.size(), MSG_NOSIGNAL);
    if (!act.reset) return;
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(peer, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

  static std::string read_request(int peer) {
    std::string request;
    char room[4096];
    std::size_t whole = std::string::npos;
    while (request.size() < whole) {
      const ssize_t got = ::recv(peer, room, sizeof room, 0);
      if (got <= 0) break;
      request.append(room, static_cast<std::size_t>(got));
      const std::size_t end = request.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::size_t length = request.find("Content-Length: ");
      whole = end + 4 + (length < end ? std::stoul(request.substr(length + 16)) : 0);
    }
    return request;
  }

  Script script_;
  Fd listener_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace headroom::test
