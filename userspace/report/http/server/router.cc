// SPDX-License-Identifier: Apache-2.0
#include "report/http/server/router.h"

#include "report/metrics/metric_family.h"
#include "report/summary/resource_page.h"

#include <utility>

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kIndex =
    "headroomd\n/                   the web page\n/api/status         the status document, as "
    "headroomctl status --json\n/api/cpus           which container has which CPUs, as headroomctl "
    "cpus --json; null if CPU pinning is off\n/api/memory         which container has memory of "
    "which NUMA nodes, as headroomctl memory --json; null if memory pinning is off\n/api/evictions "
    "     the last audit records; "
    "?last=20\n/metrics            Prometheus metrics\n/metrics/cadvisor   container_* "
    "alone\n/metrics/resource   CPU and memory of the node, pods and containers\n/stats/summary    "
    "  the kubelet's Summary API; ?only_cpu_and_memory=true\n";

// The words that Go's strconv.ParseBool accepts.
bool is_true(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" ||
         text == "True";
}

MetricsSetup with_rejection_counter(MetricsSetup setup,
                                    const std::atomic<std::uint64_t>& rejected) {
  setup.extra_families = [extra_families = std::move(setup.extra_families),
                          &rejected](Families& families) {
    MetricFamilyBuilder::counter(
        "headroom_http_requests_rejected_total",
        "HTTP requests rejected with 503 because too many responses were in progress.")
        .add(rejected.load())
        .append_to(families);
    if (extra_families) extra_families(families);
  };
  return setup;
}

}  // namespace

Router::Router(MetricsSetup metrics, SummarySetup summary, PageRouterSetup page)
    : page_(summary.views, metrics.qos_of, std::move(page)),
      metrics_(with_rejection_counter(std::move(metrics), rejected_)),
      summary_(std::move(summary)) {}

HttpResponse Router::answer(const HttpRequest& request) {
  if (auto answer = page_.answer(request)) return std::move(*answer);
  const Format format = negotiate_format(request.accept);
  const auto page = [&](std::unique_ptr<ResponseBody> body) {
    return HttpResponse{200, std::string(content_type(format)), std::move(body)};
  };
  if (request.path == "/metrics") return page(metrics_.all(format));
  if (request.path == "/metrics/cadvisor") return page(metrics_.cadvisor(format));
  if (request.path == "/metrics/resource")
    return page(std::make_unique<ResourceMetricsBody>(summary_, format));
  if (request.path == "/stats/summary") {
    const bool only_cpu_and_memory = is_true(request.argument("only_cpu_and_memory"));
    return {200, "application/json", std::make_unique<SummaryBody>(summary_, only_cpu_and_memory)};
  }
  return {404, kPlain, text_body("not found; there is:\n" + std::string(kIndex))};
}

}  // namespace headroom::report
