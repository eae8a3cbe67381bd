// SPDX-License-Identifier: Apache-2.0
// PageRouter: serves the web page at "/" and the documents that it requests: every few seconds the
// status and the last evictions, less often the owners of CPUs, and once the history of the last
// half hour. Answers are made on the HTTP server's thread.
#pragma once

#include "report/http/response_body.h"
#include "report/view/pod_waits.h"
#include "report/view/published_views.h"
#include "report/view/waits_view.h"

#include <headroom/bpf/abi.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// The web page, assembled by the build: one document without external resources.

std::string_view page_html();
// Its Content-Security-Policy: allows only its own style and script, by hash, and its own server.
std::string_view page_policy();

// TopWaiters: for each cause, the pod that waited most since the previous table. Used by one
// thread.

class TopWaiters {
 public:
  // A table that was already seen changes nothing. If a pod is not in the previous table, all its
  // waits count.
  void update(const IndexedCgroupTable& cgroups);

  // {"throttled": {"namespace": …, "name": …, "ns_per_s": …}, …}; causes without waits are left
  // out.
  nlohmann::ordered_json json() const;

 private:
  // The causes of stalls, and the CPU quota last.
  static constexpr std::size_t kWaitCauses = HR_STALL_CAUSES + 1;
  using Totals = std::array<std::uint64_t, kWaitCauses>;
  struct TopWaiter {
    std::shared_ptr<const Pod> pod;
    double ns_per_s = 0;
  };

  void compare(const PodRow& row, const Totals& now, Instant at);

  Instant at_{};
  std::unordered_map<std::uint64_t, Totals> before_;  // by the pod's cgroup; only pods with waits
  std::array<TopWaiter, kWaitCauses> top_;
};

// Whether a request's Host header means this host.
//
// A foreign site may let its own name resolve to this host's address (DNS rebinding); the browser
// then lets that site read headroomd's answers. The Host header contains the foreign name.

// `host` as the header has it: "localhost:9750", "[::1]". Addresses, localhost and `names` mean
// this host; so does "", which no browser sends.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& names);

struct PageRouterSetup {
  std::vector<std::string> names = {};       // of this host
  std::function<std::string()> cpus = {};    // as JSON; "null" if CPU pinning is off
  std::function<std::string()> memory = {};  // as JSON; "null" if memory pinning is off
  std::filesystem::path kubernetes = {};     // headroom-kube's status file
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
  HttpResponse history() const;
  HttpResponse scheduling() const;
  HttpResponse events(const HttpRequest& request) const;
  // The result of a function of the setup.
  static HttpResponse document(const std::function<std::string()>& json);
  HttpResponse evictions(const HttpRequest& request) const;

  std::shared_ptr<const PublishedViews> views_;
  QosOf qos_of_;
  PageRouterSetup setup_;
  TopWaiters top_waiters_;
};

}  // namespace headroom::report
