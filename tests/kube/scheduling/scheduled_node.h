// SPDX-License-Identifier: Apache-2.0
// A node of an API server that headroom-kube writes to, on stepped time.
#pragma once

#include "kube/scheduling/scheduling_requests.h"
#include "kube/scheduling/scheduling_sync.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube::scheduling_test {

using namespace std::chrono_literals;
using Json = nlohmann::json;

inline constexpr const char* kTime = "2026-11-20T23:00:00Z";
inline const WallTime kWallTime = *parse_rfc3339(kTime);

inline std::string node_with(const Json& taints) {
  return Json{{"metadata", {{"resourceVersion", "7"}}}, {"spec", {{"taints", taints}}}}.dump();
}

// A node of an API server, and the seconds in which something is written to it.
class SchedulingSyncTest : public testing::Test {
 protected:
  void run(SchedulingSync& sync, Duration time, double contention) {
    run(sync, time, NodeSignals{.memory_contention = 0, .cpu_contention = contention});
  }
  void run(SchedulingSync& sync, Duration time, const std::optional<NodeSignals>& signals) {
    for (const Instant end = now + time; now < end;) {
      now += 1s;
      const WallTime wall =
          kWallTime + std::chrono::duration_cast<WallTime::duration>(now - Instant{1000s});
      sync.observe(signals, now, wall);
      sync.run_once(now, wall, 0.5, [this](const HttpRequest& request) { return answer(request); });
    }
  }

  Result<HttpResponse> answer(const HttpRequest& request) {
    if (request.method == "GET") {
      Json node = Json::parse(node_with(taints));
      node["status"] = node_status;
      return HttpResponse{.status = 200, .body = node.dump()};
    }
    writes.push_back({now, request});
    if (!failing.empty()) return tl::make_unexpected(Error{failing});
    if (status != 200) return HttpResponse{.status = status};
    const Json body = Json::parse(request.body);
    if (body.contains("spec")) taints = body["spec"]["taints"];
    if (body.contains("status") && body["status"].contains("capacity"))
      node_status = body["status"];
    if (body["metadata"].contains("annotations"))
      annotation = body["metadata"]["annotations"][kSummaryAnnotation];
    return HttpResponse{.status = 200};
  }

  void expect_bounded() const {
    for (std::size_t i = 1; i < writes.size(); ++i)
      EXPECT_GE(writes[i].at - writes[i - 1].at, 10s) << i;
  }
  // One of them may be early.
  void expect_bounded_on_average() const {
    for (std::size_t i = 0; i < writes.size(); ++i)
      for (std::size_t j = i + 1; j < writes.size(); ++j)
        EXPECT_GE(writes[j].at - writes[i].at, (j - i - 1) * 10s) << i << " to " << j;
  }
  std::size_t count(const char* part) const {
    std::size_t found = 0;
    for (const Write& write : writes)
      found += write.request.path.find(part) != std::string::npos ? 1 : 0;
    return found;
  }

  struct Write {
    Instant at;
    HttpRequest request;
  };
  NodeSummary summary() const {
    auto read = node_summary_of(annotation.is_string() ? annotation.get<std::string>() : "");
    return read ? *read : NodeSummary{};
  }

  const SchedulingOptions options{.node_name = "n1", .taints = true, .conditions = true};
  const SchedulingOptions annotated{.node_name = "n1", .annotation = true};
  Instant now{1000s};
  std::string offered() const {
    return node_status.contains("capacity") ? node_status["capacity"][kBatchMemory] : Json("");
  }

  Json taints = Json::array(), annotation, node_status = Json::object();
  std::vector<Write> writes;
  std::string failing;
  long status = 200;
};

}  // namespace headroom::kube::scheduling_test
