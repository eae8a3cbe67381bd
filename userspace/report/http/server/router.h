// SPDX-License-Identifier: Apache-2.0
// Router: maps request paths to responses.
#pragma once

#include "report/http/response_body.h"
#include "report/metrics/metrics.h"
#include "report/page/page_router.h"
#include "report/summary/summary.h"

#include <atomic>
#include <cstdint>

namespace headroom::report {

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
