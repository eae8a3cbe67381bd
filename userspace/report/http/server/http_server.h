// SPDX-License-Identifier: Apache-2.0
// HttpServer: serves metrics, the Summary API and the web page on one thread (libmicrohttpd).
//
// A client cannot delay the daemon's loop: the number of connections, their memory and their time
// are limited, and an answer is produced as fast as its client reads it. An answer holds a
// published buffer meanwhile, so at most kMaxConcurrentResponses are in progress at a time.
// HealthGate answers /livez and /readyz before a connection reaches the server.
#pragma once

#include "base/file_io.h"
#include "report/health_gate.h"
#include "report/http/response_body.h"
#include "report/metrics/metrics.h"
#include "report/page/page_router.h"
#include "report/summary/summary.h"

#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

namespace headroom::report {

// Router: maps request paths to responses.

// Called on one thread: some answers contain what has changed since the previous one.
class Router {
 public:
  // `page.names`: the names of this host, in addition to its addresses and localhost.
  Router(MetricsSetup metrics, SummarySetup summary, PageRouterSetup page = {});
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  // The bodies of responses refer to the Router and must not outlive it.
  HttpResponse answer(const HttpRequest& request);
  // Counts a request that was rejected because too many were in progress.
  void count_rejected() { ++rejected_; }
  std::uint64_t rejected() const { return rejected_; }

 private:
  std::atomic<std::uint64_t> rejected_{0};
  PageRouter page_;
  Metrics metrics_;
  SummarySetup summary_;
};

}  // namespace headroom::report

namespace headroom::report {

// ExchangeDeadlines: how long each connection has been sending its request or reading its answer.
//
// A client that moves a byte every few seconds never reaches the idle limit; the limit on the whole
// exchange ends its connection. Used by one thread.

class ExchangeDeadlines {
 public:
  using Clock = std::chrono::steady_clock;

  explicit ExchangeDeadlines(std::chrono::seconds limit) : limit_(limit) {}

  // Begins the next phase: a client has connected, a request was received, an answer was sent.
  void begin(int socket) { since_[socket] = Clock::now(); }
  void remove(int socket) { since_.erase(socket); }

  std::size_t size() const { return since_.size(); }
  bool has_connections() const { return !since_.empty(); }

  // Shuts down the connections whose phase exceeds the limit. A client can tell that an answer that
  // was cut off is incomplete.
  void shut_down_expired(Clock::time_point now) const;

 private:
  const std::chrono::seconds limit_;
  std::unordered_map<int, Clock::time_point> since_;
};

}  // namespace headroom::report

struct MHD_Daemon;

namespace headroom::report {

struct HttpLimits {
  unsigned connections = 256;  // the same number may wait; beyond that the oldest are closed
  unsigned idle_seconds = 5;   // a connection without traffic for this long is closed
  // Limit for sending a request and for reading an answer, however slowly bytes arrive.
  std::chrono::seconds exchange{20};
  std::size_t memory = 32 * 1024;  // bytes per connection: its headers, and a chunk of the answer
};

class HttpServer {
 public:
  static constexpr int kMaxConcurrentResponses = 2;

  // `address` as Config.listen: "127.0.0.1:9750", "[::1]:9750"; not "".
  static Result<std::unique_ptr<HttpServer>> open(
      const std::string& address, std::shared_ptr<Router> router, const HttpLimits& limits = {},
      std::shared_ptr<const Heartbeat> heartbeat = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port in use. If `address` has port 0, the kernel chose it.
  int port() const { return port_; }
  // Requests rejected because kMaxConcurrentResponses were in progress.
  std::uint64_t rejected() const { return router_->rejected(); }

 private:
  struct Exchange;
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  HttpServer(std::shared_ptr<Router> router, const HttpLimits& limits)
      : router_(std::move(router)), limits_(limits), deadlines_(limits.exchange) {}
  Result<> listen(const std::string& address);
  Result<> serve(std::shared_ptr<const Heartbeat> heartbeat);
  void pass(Fd connection);
  void add_passed();
  void run();
  int poll_timeout_ms(bool has_connections) const;

  const std::shared_ptr<Router> router_;
  const HttpLimits limits_;
  Fd listening_;
  int port_ = 0;
  Fd wake_;         // eventfd: the thread is to stop
  Fd passed_wake_;  // eventfd: passed_ has grown
  std::mutex mutex_;
  std::deque<Fd> passed_;  // connections from the gate; guarded by mutex_
  int events_ = -1;        // the server's epoll descriptor
  // Used on the server's thread:
  ExchangeDeadlines deadlines_;
  int responses_ = 0;
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
  std::unique_ptr<HealthGate> gate_;  // ended before the thread: it calls pass()
  std::thread thread_;
};

}  // namespace headroom::report
