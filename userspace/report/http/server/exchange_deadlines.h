// SPDX-License-Identifier: Apache-2.0
// ExchangeDeadlines: how long each connection has been sending its request or reading its answer.
//
// A byte every few seconds would keep a connection from ever being idle; a limit on the whole
// exchange ends it. Used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <unordered_map>

namespace headroom::report {

class ExchangeDeadlines {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ExchangeDeadlines(std::chrono::seconds limit) : limit_(limit) {}

  // Connected, request received, answer sent: each begins the next phase.
  void begin(int socket) { since_[socket] = Clock::now(); }
  void remove(int socket) { since_.erase(socket); }

  std::size_t size() const { return since_.size(); }
  bool has_connections() const { return !since_.empty(); }

  // Shuts down the connections that took longer. A client whose answer is cut off sees that it is
  // incomplete.
  void shut_down_expired(Clock::time_point now) const;

 private:
  const std::chrono::seconds limit_;
  std::unordered_map<int, Clock::time_point> since_;
};

}  // namespace headroom::report
