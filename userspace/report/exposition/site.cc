// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/site.h"

#include "report/family.h"
#include "report/summary/resource_page.h"

#include <utility>

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kIndex =
    "headroomd\n"
    "/                   a page to look at\n"
    "/api/status         the status document, as headroomctl status --json\n"
    "/api/cpus           who has which CPUs, as headroomctl cpus --json; null where nobody deals "
    "them out\n"
    "/api/evictions      the last audit records; ?last=20\n"
    "/metrics            Prometheus metrics\n"
    "/metrics/cadvisor   container_* alone\n"
    "/metrics/resource   CPU and memory of the node, pods and containers\n"
    "/stats/summary      the kubelet's Summary API; ?only_cpu_and_memory=true\n";

// As Go's strconv.ParseBool has it.
bool is_true(std::string_view text) {
  return text == "1" || text == "t" || text == "T" || text == "true" || text == "TRUE" ||
         text == "True";
}

MetricsSetup counting(MetricsSetup setup, const std::atomic<std::uint64_t>& refused) {
  setup.more = [more = std::move(setup.more), &refused](Families& families) {
    Family::counter("headroom_http_refused_total",
                    "Requests turned away because as many as may be were being answered.")
        .add(refused.load())
        .into(families);
    if (more) more(families);
  };
  return setup;
}

}  // namespace

Site::Site(MetricsSetup metrics, SummarySetup summary, PageSiteSetup page)
    : page_(summary.shown, metrics.qos_of, std::move(page)),
      metrics_(counting(std::move(metrics), refused_)),
      summary_(std::move(summary)) {}

Answer Site::answer(const Request& request) {
  if (auto answer = page_.answer(request)) return std::move(*answer);
  const Format format = wanted_format(request.accept);
  const auto page = [&](std::unique_ptr<Body> body) {
    return Answer{200, std::string(content_type(format)), std::move(body)};
  };
  if (request.path == "/metrics") return page(metrics_.all(format));
  if (request.path == "/metrics/cadvisor") return page(metrics_.cadvisor(format));
  if (request.path == "/metrics/resource")
    return page(std::make_unique<ResourcePage>(summary_, format));
  if (request.path == "/stats/summary") {
    const bool less = is_true(request.argument("only_cpu_and_memory"));
    return {200, "application/json", std::make_unique<Summary>(summary_, less)};
  }
  return {404, kPlain, text_body("not found; there is:\n" + std::string(kIndex))};
}

}  // namespace headroom::report
