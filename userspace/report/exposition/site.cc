// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/site.h"

namespace headroom::report {
namespace {

constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kIndex =
    "headroomd\n"
    "/metrics            Prometheus metrics\n"
    "/metrics/cadvisor   container_* alone\n";

}  // namespace

Answer Site::answer(const Request& request) const {
  const Format format = wanted_format(request.accept);
  const auto page = [&](std::unique_ptr<Body> body) {
    return Answer{200, std::string(content_type(format)), std::move(body)};
  };
  if (request.path == "/metrics") return page(metrics_.all(format));
  if (request.path == "/metrics/cadvisor") return page(metrics_.cadvisor(format));
  if (request.path == "/") return {200, kPlain, text_body(kIndex)};
  return {404, kPlain, text_body("not found; there is:\n" + std::string(kIndex))};
}

}  // namespace headroom::report
