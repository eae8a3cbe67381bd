// SPDX-License-Identifier: Apache-2.0
// PageRouter: the page at "/", and what it requests once a second: the status document and the last
// evictions; less often the owners of CPUs. Answers are made on the serving thread.
#pragma once

#include "report/http/http_message.h"
#include "report/page/top_waiters.h"
#include "report/view/published_views.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::report {

struct PageRouterSetup {
  std::vector<std::string> names = {};     // the host's
  std::function<std::string()> cpus = {};  // as JSON; "null" if CPU pinning is off
};

class PageRouter {
 public:
  PageRouter(std::shared_ptr<const PublishedViews> views, QosOf qos_of, PageRouterSetup setup = {})
      : views_(std::move(views)), qos_of_(qos_of), setup_(std::move(setup)) {}

  // Absent: the path is not one of these.
  std::optional<HttpResponse> answer(const HttpRequest& request);

 private:
  std::optional<HttpResponse> api_document(const HttpRequest& request);
  HttpResponse status(const HttpRequest& request);
  HttpResponse cpus() const;
  HttpResponse evictions(const HttpRequest& request) const;

  std::shared_ptr<const PublishedViews> views_;
  QosOf qos_of_;
  PageRouterSetup setup_;
  TopWaiters top_waiters_;
};

}  // namespace headroom::report
