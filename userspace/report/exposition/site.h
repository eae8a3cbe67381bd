// SPDX-License-Identifier: Apache-2.0
// Site: what is served under which path.
#pragma once

#include "report/exposition/body.h"
#include "report/metrics.h"
#include "report/summary/summary.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {

struct Request {
  std::string_view path = {};
  std::string_view accept = {};  // the header; "" without
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
  Site(MetricsSetup metrics, SummarySetup summary);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  // Not after this is gone: bodies refer to it.
  Answer answer(const Request& request) const;
  // A request was turned away: too many at a time.
  void note_refused() const { ++refused_; }
  std::uint64_t refused() const { return refused_; }

 private:
  mutable std::atomic<std::uint64_t> refused_{0};
  Metrics metrics_;
  SummarySetup summary_;
};

}  // namespace headroom::report
