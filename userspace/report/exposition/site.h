// SPDX-License-Identifier: Apache-2.0
// Site: what is served under which path.
#pragma once

#include "report/exposition/body.h"
#include "report/metrics.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {

struct Request {
  std::string_view path;
  std::string_view accept;  // the header; "" without
  // The value of ?name=value, "" without one.
  std::function<std::string_view(const char* name)> argument = [](const char*) {
    return std::string_view();
  };
};

struct Answer {
  unsigned status = 200;
  std::string content_type;
  std::unique_ptr<Body> body;
};

class Site {
 public:
  explicit Site(MetricsSetup setup) : metrics_(std::move(setup)) {}
  Answer answer(const Request& request) const;

 private:
  Metrics metrics_;
};

}  // namespace headroom::report
