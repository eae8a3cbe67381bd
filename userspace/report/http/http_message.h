// SPDX-License-Identifier: Apache-2.0
// Request and Answer: what a client asks of the site, and what it gets.
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
  std::string_view host = {};           // the header; "" without
  std::string_view accept = {};         // likewise
  std::string_view if_none_match = {};  // If-None-Match, likewise
  // The value of ?name=value, "" without one.
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
  std::vector<HttpHeader> headers = {};  // beside the content's type
};

}  // namespace headroom::report
