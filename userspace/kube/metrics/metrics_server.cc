// SPDX-License-Identifier: Apache-2.0
#include "kube/metrics/metrics_server.h"

#include "base/http_handler.h"
#include "base/listen_socket.h"
#include "base/log/journal.h"

#include <microhttpd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <utility>

namespace headroom::kube {
namespace {

constexpr auto kPaths =
    std::to_array<std::string_view>({"/metrics", "/metrics/cadvisor", "/metrics/resource"});
constexpr std::chrono::seconds kWaitForAnswer{10};

void log_line(void*, const char* format, va_list arguments) {
  std::array<char, 256> line;
  if (std::vsnprintf(line.data(), line.size(), format, arguments) > 0)
    log::debug("metrics server: {}", std::string_view(line.data()));
}

std::string_view header(MHD_Connection* connection, const char* name) {
  const char* value = ::MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value ? value : "";
}

using Semaphore = std::counting_semaphore<MetricsServer::kMaxAnswers>;
struct Release {
  void operator()(Semaphore* semaphore) const { semaphore->release(); }
};

// What is answered. Metrics hold one of the free answers for as long as they are in memory.
struct Answer {
  unsigned status = MHD_HTTP_OK;
  std::string body{};
  std::string content_type = "text/plain; charset=utf-8";
  std::unique_ptr<Semaphore, Release> held{};
};

bool is_metrics_path(std::string_view path) {
  return std::ranges::find(kPaths, path) != kPaths.end();
}

Answer refuse(unsigned status, const std::string& why) {
  return {.status = status, .body = why + '\n'};
}

}  // namespace

// libmicrohttpd calls these on the thread of a connection.
struct MetricsServer::Requests {
  static MHD_Result begin(void* server, MHD_Connection* connection, const char* path,
                          const char* method, const char*, const char*, std::size_t* upload,
                          void** seen) {
    if (!is_to_be_answered(seen, upload)) return MHD_YES;
    auto& owner = *static_cast<MetricsServer*>(server);
    try {
      return queue(connection, std::make_unique<Answer>(answer(owner, connection, method, path)));
    } catch (const std::exception& e) {
      log::error("answer {}: {}", path, e.what());
      return MHD_NO;
    }
  }

  static void free(void* self) { delete static_cast<Answer*>(self); }

  static MHD_Result queue(MHD_Connection* connection, std::unique_ptr<Answer> answer) {
    Answer* const given = answer.get();
    MHD_Response* const response = ::MHD_create_response_from_buffer_with_free_callback_cls(
        given->body.size(), given->body.data(), &free, given);
    if (!response) return MHD_NO;
    const unsigned status = given->status;
    ::MHD_add_response_header(response, "Content-Type", given->content_type.c_str());
    if (status == MHD_HTTP_UNAUTHORIZED)
      ::MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    answer.release();  // the response frees it
    const MHD_Result queued = ::MHD_queue_response(connection, status, response);
    ::MHD_destroy_response(response);
    return queued;
  }

  static Answer answer(MetricsServer& owner, MHD_Connection* connection, std::string_view method,
                       const std::string& path) {
    if (method != "GET" && method != "HEAD")
      return refuse(MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are answered");
    const std::string token = bearer_token(header(connection, "Authorization"));
    if (token.empty()) return refuse(MHD_HTTP_UNAUTHORIZED, "a bearer token is needed");
    if (!is_metrics_path(path)) return refuse(MHD_HTTP_NOT_FOUND, "not found");
    const auto access = owner.ports_.check_access(token, path);
    if (!access) {
      log::warning("metrics server: {}", access.error().what);
      return refuse(MHD_HTTP_SERVICE_UNAVAILABLE, "the API server did not review the token");
    }
    switch (*access) {
      case Access::kUnauthenticated:
        return refuse(MHD_HTTP_UNAUTHORIZED, "the API server does not know this token");
      case Access::kForbidden:
        return refuse(MHD_HTTP_FORBIDDEN, "no role allows get on " + path);
      case Access::kAllowed:
        break;
    }
    return metrics(owner, path, std::string(header(connection, "Accept")));
  }

  static Answer metrics(MetricsServer& owner, const std::string& path, std::string accept) {
    if (!owner.free_answers_.try_acquire_for(kWaitForAnswer))
      return refuse(MHD_HTTP_SERVICE_UNAVAILABLE, "too many answers are in progress");
    std::unique_ptr<Semaphore, Release> held(&owner.free_answers_);
    HttpRequest request{.path = path, .max_body = kMaxAnswerBytes};
    if (!accept.empty()) request.headers.emplace_back("Accept", std::move(accept));
    auto response = owner.ports_.fetch(request);
    if (!response) {
      log::warning("metrics server: fetch {} from headroomd: {}", path, response.error().what);
      return refuse(MHD_HTTP_BAD_GATEWAY, "headroomd does not answer");
    }
    Answer made{.status = static_cast<unsigned>(response->status),
                .body = std::move(response->body),
                .held = std::move(held)};
    if (const std::string* type = response->header("content-type")) made.content_type = *type;
    return made;
  }
};

void MetricsServer::Stop::operator()(MHD_Daemon* daemon) const {
  ::MHD_stop_daemon(daemon);
}

MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::open(const std::string& address,
                                                           const ServerCertificate& certificate,
                                                           MetricsServerPorts ports) {
  auto listening = listen_on(address);
  if (!listening)
    return failure("listen on " + address + " for metrics: " + listening.error().what);
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(ports)));
  server->port_ = port_of(*listening);
  constexpr std::size_t kStackBytes = std::size_t{512} << 10, kConnectionBytes = 32 * 1024;
  server->daemon_.reset(::MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_TLS |
          MHD_USE_ITC | MHD_USE_ERROR_LOG,
      0, nullptr, nullptr, &Requests::begin, server.get(), MHD_OPTION_EXTERNAL_LOGGER, &log_line,
      nullptr, MHD_OPTION_LISTEN_SOCKET, listening->get(), MHD_OPTION_HTTPS_MEM_CERT,
      certificate.certificate.c_str(), MHD_OPTION_HTTPS_MEM_KEY, certificate.key.c_str(),
      MHD_OPTION_HTTPS_PRIORITIES, kTlsPriorities, MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kConnectionBytes, MHD_OPTION_THREAD_STACK_SIZE, kStackBytes, MHD_OPTION_END));
  if (!server->daemon_)
    return failure("serve metrics on " + address + " over TLS: the library refuses to start");
  listening->release();
  return server;
}

std::string bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.starts_with(kScheme)) return "";
  return std::string(authorization.substr(kScheme.size()));
}

}  // namespace headroom::kube
