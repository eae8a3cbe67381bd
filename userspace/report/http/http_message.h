// SPDX-License-Identifier: Apache-2.0
// Request and Answer: what a client requests, and what it gets.
#pragma once

#include "report/http/response_body.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

struct HttpRequest {
  std::string_view path = {};
  std::string_view host = {};           // the header; "" if missing
  std::string_view accept = {};         // Accept; "" if missing
  std::string_view if_none_match = {};  // If-None-Match; "" if missing
  // The value of ?name=value; "" if missing.
  std::function<std::string_view(const char* name)> argument = [](const char*) {
    return std::string_view();
  };
};

struct HttpHeader {
  const char* name;
  std::string value;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type;
  std::unique_ptr<ResponseBody> body;
  std::vector<HttpHeader> headers = {};  // in addition to Content-Type
};

}  // namespace headroom::report
