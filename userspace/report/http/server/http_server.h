// SPDX-License-Identifier: Apache-2.0
// HttpServer: the endpoint Prometheus scrapes, on one thread of its own (libmicrohttpd).
//
// Nothing a client does reaches the loop: connections, their memory and their time are bounded, and
// an answer is made as fast as its client takes it. It holds a published buffer meanwhile, so only
// kAnswers are given at a time. /livez and /readyz are answered before all that (HealthGate).
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

// Called on one thread: some answers contain what has changed since the last.
class Router {
 public:
  // `page.names`: this host's, beside its addresses and localhost.
  Router(MetricsSetup metrics, SummarySetup summary, PageRouterSetup page = {});
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;
  // Must not be called after this is destroyed: bodies refer to it.
  HttpResponse answer(const HttpRequest& request);
  // A request was rejected: too many at a time.
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
// A byte every few seconds would keep a connection from ever being idle; a limit on the whole
// exchange ends it. Used by one thread.

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

struct MHD_Daemon;

namespace headroom::report {

struct HttpLimits {
  unsigned connections = 256;  // as many more wait; beyond that the oldest are closed
  unsigned idle_seconds = 5;   // without a byte moved, a connection is closed
  // Limit for sending a request and for reading an answer, however slowly bytes arrive.
  std::chrono::seconds exchange{20};
  std::size_t memory = 32 * 1024;  // per connection: its headers, and a chunk of the answer
};

class HttpServer {
 public:
  static constexpr int kMaxConcurrentResponses = 2;

  // `address` as Config.listen: "127.0.0.1:9750", "[::1]:9750". Not called when it is "".
  static Result<std::unique_ptr<HttpServer>> open(
      const std::string& address, std::shared_ptr<Router> router, const HttpLimits& limits = {},
      std::shared_ptr<const Heartbeat> heartbeat = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port bound, which the kernel chose when `address` said 0.
  int port() const { return port_; }
  // Requests turned away because kAnswers were being given.
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
  Fd wake_;         // written to when the thread is to stop
  Fd passed_wake_;  // and to after passed_ grew
  std::mutex mutex_;
  std::deque<Fd> passed_;  // by the gate; under mutex_
  int events_ = -1;        // the server's epoll descriptor
  // The thread's own:
  ExchangeDeadlines deadlines_;
  int responses_ = 0;
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
  std::thread thread_;
  std::unique_ptr<HealthGate> gate_;  // last: it calls pass()
};

}  // namespace headroom::report
