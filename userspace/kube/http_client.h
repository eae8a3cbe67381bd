// SPDX-License-Identifier: Apache-2.0
// http(): one request to a kubelet or an API server, on the calling thread, which waits.
//
// Tokens, certificates and authorities are read from their files for each request, so rotated ones
// are used at once. Redirects are not followed: a bearer token must not reach another server.
#pragma once

#include "config/kubernetes_config.h"

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
  std::string path;       // "/pods", from the server's url on
  HttpHeaders headers{};  // beside Authorization, Accept (JSON where none is given) and Host
  std::string body{};
  // What more of a response is an error: a server gone mad must not be our end.
  std::size_t max_body = std::size_t{64} << 20;  // bytes
};

struct HttpResponse {
  long status = 0;        // 200, 404, ...
  HttpHeaders headers{};  // names in lower case
  std::string body{};

  bool good() const { return status >= 200 && status < 300; }
  const std::string* header(std::string_view name) const;  // lower case; null: not there
};

// Any answer is a response, a 500 too. An error means that there was none: no connection, an
// untrusted server, a timeout, half an answer, or `stop` was requested (Error::code is ECANCELED).
Result<HttpResponse> http(const config::ServerConfig& server, const HttpRequest& request,
                          const std::stop_token& stop = {});

// One connection is kept between requests of the same Client, as long as the server likes. A new
// token is sent on it all the same; new certificates count from the next connection on. Of one
// thread.
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
  void* curl_;  // CURL: curl.h stays in http.cc
};

}  // namespace headroom::kube
