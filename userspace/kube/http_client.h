// SPDX-License-Identifier: Apache-2.0
// http(): one blocking request to a kubelet or an API server.
//
// Tokens, certificates and CAs are read from their files for each request, so rotated ones are used
// at once. Redirects are not followed: a bearer token must not reach another server.
#pragma once

#include "config/config.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::kube {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string path;       // "/pods"; appended to the server's url
  HttpHeaders headers{};  // in addition to Authorization, Accept (default: JSON) and Host
  std::string body{};
  // A longer response is an error: a faulty server must not exhaust our memory.
  std::size_t max_body = std::size_t{64} << 20;  // bytes
  // Takes the pieces of the body of a success as they come, which is then not kept and may be of
  // any length. False ends the request with an error.
  std::function<bool(std::string_view piece)> on_data{};
};

struct HttpResponse {
  long status = 0;        // 200, 404, ...
  HttpHeaders headers{};  // names in lower case
  std::string body{};

  bool good() const { return status >= 200 && status < 300; }
  const std::string* header(std::string_view name) const;  // lower case; null if missing
};

// Every complete response is a result, even a 500. An error means that there was none: no
// connection, an untrusted server, a timeout, a truncated response, or `stop` was requested
// (Error::code is ECANCELED).
Result<HttpResponse> http(const config::ServerConfig& server, const HttpRequest& request,
                          const std::stop_token& stop = {});

// Keeps one connection open between its requests, as long as the server allows. A new token is used
// on the open connection; new certificates are used from the next connection on. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(config::ServerConfig server);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  const config::ServerConfig& server() const { return server_; }
  Result<HttpResponse> http(const HttpRequest& request, const std::stop_token& stop = {});

 private:
  config::ServerConfig server_;
  void* curl_;  // CURL: only http_client.cc includes curl.h
};

}  // namespace headroom::kube
