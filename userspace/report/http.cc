// SPDX-License-Identifier: Apache-2.0
#include "report/http.h"

#include <exception>
#include <utility>
#include <vector>

#include <prometheus/exposer.h>

namespace headroom::report {
namespace {

// One to serve and one for a scraper that hangs: each holds a published buffer while it builds.
constexpr const char* kThreads = "2";

}  // namespace

Http::Http(std::unique_ptr<prometheus::Exposer> exposer,
           std::shared_ptr<prometheus::Collectable> metrics)
    : metrics_(std::move(metrics)), exposer_(std::move(exposer)) {}

Http::~Http() = default;

Result<std::unique_ptr<Http>> Http::open(const std::string& address,
                                         std::shared_ptr<prometheus::Collectable> metrics) {
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", address, "num_threads", kThreads, "request_timeout_ms", "10000"});
    exposer->RegisterCollectable(metrics);
    return std::unique_ptr<Http>(new Http(std::move(exposer), std::move(metrics)));
  } catch (const std::exception& e) {
    // civetweb says only that it could not; the address is what the operator can act on.
    return failure("listen on " + address + " for metrics: " + e.what());
  }
}

int Http::port() const {
  const std::vector<int> ports = exposer_->GetListeningPorts();
  return ports.empty() ? 0 : ports.front();
}

}  // namespace headroom::report
