// SPDX-License-Identifier: Apache-2.0
#include "report/http/server/http_server.h"

#include "base/file_io.h"
#include "base/http_handler.h"
#include "base/listen_socket.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "report/metrics/metric_family.h"
#include "report/summary/resource_page.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <utility>

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kIndex =
    "headroomd\n/                   the web page\n/api/status         the status document, as "
    "headroomctl status --json\n/api/cpus           which container has which CPUs, as headroomctl "
    "cpus --json; null if CPU pinning is off\n/api/memory         which container has memory of "
    "which NUMA nodes, as headroomctl memory --json; null if memory pinning is off\n/api/history   "
    "     "
    "the node's last half hour\n/api/scheduling     what Kubernetes' scheduler should know"
    "\n/api/events         numbered events, as headroomctl watch --json; "
    "?after=0\n/api/evictions "
    "     the last audit records; "
    "?last=20\n/metrics            Prometheus metrics\n/metrics/cadvisor   container_* "
    "alone\n/metrics/fleet      at most 30 series of the node, for a fleet\n/metrics/resource   "
    "CPU and memory of the node, pods and containers\n/stats/summary    "
    "  the kubelet's Summary API; ?only_cpu_and_memory=true\n";

// The words that Go's strconv.ParseBool accepts.
bool is_true(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" ||
         text == "True";
}

MetricsSetup with_rejection_counter(MetricsSetup setup,
                                    const std::atomic<std::uint64_t>& rejected) {
  setup.extra_families = [extra_families = std::move(setup.extra_families),
                          &rejected](Families& families) {
    MetricFamilyBuilder::counter(
        "headroom_http_requests_rejected_total",
        "HTTP requests rejected with 503 because too many responses were in progress.")
        .add(rejected.load())
        .append_to(families);
    if (extra_families) extra_families(families);
  };
  return setup;
}

}  // namespace

Router::Router(MetricsSetup metrics, SummarySetup summary, PageRouterSetup page)
    : page_(summary.views, metrics.qos_of, std::move(page)),
      metrics_(with_rejection_counter(std::move(metrics), rejected_)),
      summary_(std::move(summary)) {}

HttpResponse Router::answer(const HttpRequest& request) {
  if (auto answer = page_.answer(request)) return std::move(*answer);
  const Format format = negotiate_format(request.accept);
  const auto page = [&](std::unique_ptr<ResponseBody> body) {
    return HttpResponse{200, std::string(content_type(format)), std::move(body)};
  };
  if (request.path == "/metrics") return page(metrics_.all(format));
  if (request.path == "/metrics/cadvisor") return page(metrics_.cadvisor(format));
  if (request.path == "/metrics/fleet") return page(metrics_.fleet(format));
  if (request.path == "/metrics/resource")
    return page(std::make_unique<ResourceMetricsBody>(summary_, format));
  if (request.path == "/stats/summary") {
    const bool only_cpu_and_memory = is_true(request.argument("only_cpu_and_memory"));
    return {200, "application/json", std::make_unique<SummaryBody>(summary_, only_cpu_and_memory)};
  }
  return {404, kPlain, text_body("not found; there is:\n" + std::string(kIndex))};
}

void ExchangeDeadlines::shut_down_expired(Clock::time_point now) const {
  for (const auto& [socket, since] : since_)
    if (now - since > limit_) ::shutdown(socket, SHUT_RDWR);
}

namespace {

void log_line(void*, const char* format, va_list arguments) {
  std::array<char, 256> line;
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) log::debug("http: {}", std::string_view(line.data()));
}

std::string_view header(MHD_Connection* connection, const char* name) {
  const char* value = ::MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value ? value : "";
}

int socket_of(MHD_Connection* connection) {
  return ::MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

using Response = std::unique_ptr<MHD_Response, decltype(&::MHD_destroy_response)>;

MHD_Result queue_response(MHD_Connection* connection, unsigned status, const char* name,
                          const char* value, Response response) {
  if (!response) return MHD_NO;
  ::MHD_add_response_header(response.get(), name, value);
  return ::MHD_queue_response(connection, status, response.get());
}

MHD_Result reject(MHD_Connection* connection, unsigned status, const char* name,
                  const char* value) {
  return queue_response(
      connection, status, name, value,
      Response(::MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT),
               &::MHD_destroy_response));
}

}  // namespace

// One response in progress. libmicrohttpd calls its functions on the server's thread, and frees it.
struct HttpServer::Exchange {
  Exchange(HttpServer& http, std::unique_ptr<ResponseBody> answer)
      : owner(http), body(std::move(answer)) {
    ++owner.responses_;
  }
  ~Exchange() { --owner.responses_; }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  static ssize_t read(void* self, std::uint64_t, char* room, std::size_t size) {
    auto& exchange = *static_cast<Exchange*>(self);
    try {
      const std::size_t read = exchange.body->read({room, size});
      return read == 0 ? MHD_CONTENT_READER_END_OF_STREAM : static_cast<ssize_t>(read);
    } catch (const std::exception& e) {
      log::error("write an answer: {}", e.what());
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
  }
  static void free(void* self) { delete static_cast<Exchange*>(self); }

  static MHD_Result begin(void* http, MHD_Connection* connection, const char* url,
                          const char* method, const char*, const char*, std::size_t* upload,
                          void** seen) {
    if (!is_to_be_answered(seen, upload)) return MHD_YES;
    const std::string_view verb = method;
    if (verb != "GET" && verb != "HEAD")
      return reject(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD");
    auto& owner = *static_cast<HttpServer*>(http);
    if (owner.responses_ >= kMaxConcurrentResponses) {
      owner.router_->count_rejected();
      return reject(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After", "1");
    }
    try {
      return answer(owner, connection, url);
    } catch (const std::exception& e) {
      log::error("answer {}: {}", url, e.what());
      return reject(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "Retry-After", "1");
    }
  }

  static void connected(void* http, MHD_Connection* connection, void**,
                        MHD_ConnectionNotificationCode what) {
    ExchangeDeadlines& deadlines = static_cast<HttpServer*>(http)->deadlines_;
    log::log_exceptions("a connection", [&] {
      if (what == MHD_CONNECTION_NOTIFY_STARTED)
        deadlines.begin(socket_of(connection));
      else
        deadlines.remove(socket_of(connection));
    });
  }
  static void answered(void* http, MHD_Connection* connection, void**, MHD_RequestTerminationCode) {
    log::log_exceptions("an answer", [&] {
      static_cast<HttpServer*>(http)->deadlines_.begin(socket_of(connection));
    });
  }

  static MHD_Result answer(HttpServer& owner, MHD_Connection* connection, const char* url) {
    const auto argument = [connection](const char* name) {
      const char* value = ::MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
      return std::string_view(value ? value : "");
    };
    HttpResponse made = owner.router_->answer({.path = url,
                                               .host = header(connection, "Host"),
                                               .accept = header(connection, "Accept"),
                                               .if_none_match = header(connection, "If-None-Match"),
                                               .argument = argument});
    owner.deadlines_.begin(socket_of(connection));
    auto exchange = std::make_unique<Exchange>(owner, std::move(made.body));
    Response response(::MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, owner.limits_.memory,
                                                          &read, exchange.get(), &free),
                      &::MHD_destroy_response);
    if (response) exchange.release();  // owned by the response
    for (const HttpHeader& each : made.headers)
      ::MHD_add_response_header(response.get(), each.name, each.value.c_str());
    return queue_response(connection, made.status, "Content-Type", made.content_type.c_str(),
                          std::move(response));
  }

  HttpServer& owner;
  std::unique_ptr<ResponseBody> body;
};

void HttpServer::Stop::operator()(MHD_Daemon* daemon) const {
  ::MHD_stop_daemon(daemon);
}

HttpServer::~HttpServer() {
  gate_.reset();
  if (!thread_.joinable()) return;
  signal_event_fd(wake_.get());
  thread_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::open(const std::string& address,
                                                     std::shared_ptr<Router> router,
                                                     const HttpLimits& limits,
                                                     std::shared_ptr<const Heartbeat> heartbeat) {
  std::unique_ptr<HttpServer> http(new HttpServer(std::move(router), limits));
  auto ready = http->listen(address);
  if (ready) ready = http->serve(std::move(heartbeat));
  if (!ready) return failure("listen on " + address + " for metrics: " + ready.error().what);
  return http;
}

Result<> HttpServer::listen(const std::string& address) {
  auto bound = listen_on(address);
  if (!bound) return tl::make_unexpected(bound.error());
  listening_ = std::move(*bound);
  port_ = port_of(listening_);
  return {};
}

Result<> HttpServer::serve(std::shared_ptr<const Heartbeat> heartbeat) {
  wake_ = open_event_fd();
  passed_wake_ = open_event_fd();
  if (!wake_ || !passed_wake_) return errno_failure("eventfd", errno);
  daemon_.reset(::MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
      &Exchange::begin, this, MHD_OPTION_EXTERNAL_LOGGER, &log_line, nullptr,
      MHD_OPTION_NOTIFY_CONNECTION, &Exchange::connected, this, MHD_OPTION_NOTIFY_COMPLETED,
      &Exchange::answered, this, MHD_OPTION_CONNECTION_LIMIT, limits_.connections,
      MHD_OPTION_CONNECTION_TIMEOUT, limits_.idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      limits_.memory, MHD_OPTION_END));
  if (!daemon_) return failure("start the server");
  events_ = ::MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  thread_ = std::thread([this] { run(); });
  auto gate = HealthGate::open(std::move(listening_), std::move(heartbeat),
                               std::chrono::seconds(limits_.idle_seconds),
                               [this](Fd connection) { pass(std::move(connection)); });
  if (!gate) return tl::make_unexpected(gate.error());
  gate_ = std::move(*gate);
  return {};
}

// Called on the gate's thread.
void HttpServer::pass(Fd connection) {
  {
    const std::lock_guard lock(mutex_);
    if (passed_.size() >= limits_.connections) passed_.pop_front();
    passed_.push_back(std::move(connection));
  }
  signal_event_fd(passed_wake_.get());
}

// Adds as many of the passed connections as there are free slots.
void HttpServer::add_passed() {
  clear_event_fd(passed_wake_.get());
  while (deadlines_.size() < limits_.connections) {
    Fd connection;
    {
      const std::lock_guard lock(mutex_);
      if (passed_.empty()) return;
      connection = std::move(passed_.front());
      passed_.pop_front();
    }
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    auto* const peer = reinterpret_cast<sockaddr*>(&address);
    if (::getpeername(connection.get(), peer, &length) != 0) continue;  // it disconnected
    // The library closes the descriptor even if it returns an error.
    ::MHD_add_connection(daemon_.get(), connection.release(), peer, length);
  }
}

// The time until the library has work, at most kMaxPollMs. -1, no limit: it has none, and no client
// is connected.
int HttpServer::poll_timeout_ms(bool has_connections) const {
  constexpr MHD_UNSIGNED_LONG_LONG kMaxPollMs = 500;
  MHD_UNSIGNED_LONG_LONG wait = kMaxPollMs;
  if (::MHD_get_timeout(daemon_.get(), &wait) != MHD_YES && !has_connections) return -1;
  return static_cast<int>(std::min(wait, kMaxPollMs));
}

void HttpServer::run() {
  set_thread_name("http");
  bool has_connections = false;
  for (;;) {
    std::array<pollfd, 3> watched{
        {{events_, POLLIN, 0}, {wake_.get(), POLLIN, 0}, {passed_wake_.get(), POLLIN, 0}}};
    ::poll(watched.data(), watched.size(), poll_timeout_ms(has_connections));
    if (watched[1].revents) return;
    log::log_exceptions("http", [&] {
      add_passed();
      const bool before = deadlines_.has_connections();
      ::MHD_run(daemon_.get());
      deadlines_.shut_down_expired(ExchangeDeadlines::Clock::now());
      // If a connection was closed, another turn must follow soon: a waiting connection then gets
      // its slot.
      has_connections = before || deadlines_.has_connections();
    });
  }
}

}  // namespace headroom::report
