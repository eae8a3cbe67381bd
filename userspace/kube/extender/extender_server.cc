// SPDX-License-Identifier: Apache-2.0
#include "kube/extender/extender_server.h"

#include "base/listen_socket.h"
#include "base/log/journal.h"

#include <microhttpd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

namespace headroom::kube {
namespace {

void log_line(void*, const char* format, va_list arguments) {
  std::array<char, 256> line;
  if (std::vsnprintf(line.data(), line.size(), format, arguments) > 0)
    log::debug("extender: {}", std::string_view(line.data()));
}

struct Answer {
  unsigned status = MHD_HTTP_OK;
  std::string body{};
  const char* content_type = "application/json";
};

Answer refuse(unsigned status, std::string why) {
  return {.status = status, .body = std::move(why) + '\n', .content_type = "text/plain"};
}

MHD_Result queue(MHD_Connection* connection, const Answer& answer) {
  MHD_Response* const response = ::MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (!response) return MHD_NO;
  ::MHD_add_response_header(response, "Content-Type", answer.content_type);
  const MHD_Result queued = ::MHD_queue_response(connection, answer.status, response);
  ::MHD_destroy_response(response);
  return queued;
}

}  // namespace

// The body of one request, as far as it has come.
struct ExtenderServer::Body {
  explicit Body(std::atomic<std::size_t>& all) : all_bodies(all) {}
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() { all_bodies -= text.size(); }

  void add(std::string_view piece) {
    if (refused != 0) return;
    if (text.size() + piece.size() > kMaxExtenderBody)
      refused = MHD_HTTP_CONTENT_TOO_LARGE;
    else if (all_bodies.load() + piece.size() > kMaxBodies)
      refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    if (refused != 0) return;
    text += piece;
    all_bodies += piece.size();
  }

  std::atomic<std::size_t>& all_bodies;
  std::string text{};
  unsigned refused = 0;  // the status to answer with, whatever else comes
};

// libmicrohttpd calls these on the thread of a connection: first with the headers alone, then with
// each piece of the body, then to answer.
struct ExtenderServer::Requests {
  static MHD_Result take(void* server, MHD_Connection* connection, const char* path,
                         const char* method, const char*, const char* piece, std::size_t* size,
                         void** request) {
    auto& owner = *static_cast<ExtenderServer*>(server);
    try {
      if (!*request) {
        *request = new Body(owner.bodies_);
        return MHD_YES;
      }
      Body& body = *static_cast<Body*>(*request);
      if (*size > 0) {
        body.add({piece, std::exchange(*size, 0)});
        return MHD_YES;
      }
      return queue(connection, answer(owner, method, path, body));
    } catch (const std::exception& e) {
      log::error("extender: answer {}: {}", path, e.what());
      return MHD_NO;
    }
  }

  static void end(void*, MHD_Connection*, void** request, MHD_RequestTerminationCode) {
    delete static_cast<Body*>(*request);
    *request = nullptr;
  }

  static Answer answer(const ExtenderServer& owner, std::string_view method, std::string_view path,
                       const Body& body) {
    if (path == "/healthz") return refuse(MHD_HTTP_OK, "ok");
    if (path == "/readyz")
      return owner.ports_.is_ready()
                 ? refuse(MHD_HTTP_OK, "ok")
                 : refuse(MHD_HTTP_SERVICE_UNAVAILABLE, "the nodes were not listed yet");
    const bool filters = path == "/filter";
    if (!filters && path != "/prioritize") return refuse(MHD_HTTP_NOT_FOUND, "not found");
    if (method != "POST") return refuse(MHD_HTTP_METHOD_NOT_ALLOWED, "only POST is answered");
    if (body.refused != 0) return refuse(body.refused, "the request is too large");
    const auto args = extender_args_of(body.text);
    if (!args) return refuse(MHD_HTTP_BAD_REQUEST, args.error().what);
    const auto& [find, now, is_ready] = owner.ports_;
    return {.body = filters ? filter_answer(*args, find, now())
                            : prioritize_answer(*args, find, now())};
  }
};

void ExtenderServer::Stop::operator()(MHD_Daemon* daemon) const {
  ::MHD_stop_daemon(daemon);
}

ExtenderServer::~ExtenderServer() = default;

Result<std::unique_ptr<ExtenderServer>> ExtenderServer::open(
    const std::string& address, const std::optional<ServerCertificate>& certificate,
    ExtenderPorts ports) {
  auto listening = listen_on(address);
  if (!listening)
    return failure("listen on " + address + " for the scheduler: " + listening.error().what);
  std::unique_ptr<ExtenderServer> server(new ExtenderServer(std::move(ports)));
  server->port_ = port_of(*listening);
  constexpr std::size_t kStackBytes = std::size_t{1} << 20, kConnectionBytes = 64 * 1024;
  std::array<MHD_OptionItem, 4> tls{MHD_OptionItem{MHD_OPTION_END, 0, nullptr}};
  unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
                   MHD_USE_ITC | MHD_USE_ERROR_LOG;
  if (certificate) {
    flags |= MHD_USE_TLS;
    const auto text = [](const char* value) { return const_cast<char*>(value); };
    tls = {MHD_OptionItem{MHD_OPTION_HTTPS_MEM_CERT, 0, text(certificate->certificate.c_str())},
           MHD_OptionItem{MHD_OPTION_HTTPS_MEM_KEY, 0, text(certificate->key.c_str())},
           MHD_OptionItem{MHD_OPTION_HTTPS_PRIORITIES, 0, text(kTlsPriorities)},
           MHD_OptionItem{MHD_OPTION_END, 0, nullptr}};
  }
  server->daemon_.reset(::MHD_start_daemon(
      flags, 0, nullptr, nullptr, &Requests::take, server.get(), MHD_OPTION_EXTERNAL_LOGGER,
      &log_line, nullptr, MHD_OPTION_LISTEN_SOCKET, listening->get(), MHD_OPTION_NOTIFY_COMPLETED,
      &Requests::end, nullptr, MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
      kConnectionBytes, MHD_OPTION_THREAD_STACK_SIZE, kStackBytes, MHD_OPTION_ARRAY, tls.data(),
      MHD_OPTION_END));
  if (!server->daemon_)
    return failure("serve the scheduler on " + address + ": the library refuses to start");
  listening->release();
  return server;
}

}  // namespace headroom::kube
