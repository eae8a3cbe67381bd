// SPDX-License-Identifier: Apache-2.0
// headroom-kube's status file, as the status document and the metrics have it.
#include "report/metrics/kube_metrics.h"

#include "config/temp_dir.h"
#include "report/status/status_parts.h"

#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Samples = std::map<std::string, double>;

Samples samples(const std::filesystem::path& file) {
  std::vector<prometheus::MetricFamily> families;
  add_kubernetes_families(file, families);
  Samples all;
  for (const prometheus::MetricFamily& family : families)
    for (const prometheus::ClientMetric& metric : family.metric)
      all[family.name] = family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                                        : metric.gauge.value;
  return all;
}

TEST(Kubernetes, IsShownAsItWasWrittenDown) {
  const auto json = kubernetes_json("tests/fixtures/kube/status.json");
  EXPECT_EQ(json["kubelet"]["pods"], 12);
  const Samples all = samples("tests/fixtures/kube/status.json");
  EXPECT_EQ(all.at("headroom_kube_kubelet_up"), 0);
  EXPECT_EQ(all.at("headroom_kube_polls_total"), 100);
  EXPECT_EQ(all.at("headroom_kube_polls_failed_total"), 5);
  EXPECT_EQ(all.at("headroom_kube_pods"), 12);
  EXPECT_EQ(all.at("headroom_kube_pods_timestamp_seconds"), 1790000000);
  EXPECT_EQ(all.at("headroom_kube_api_up"), 0);
  EXPECT_EQ(all.at("headroom_kube_evictions_pending"), 2);
  EXPECT_EQ(all.at("headroom_kube_evictions_reported_total"), 7);
  EXPECT_EQ(all.at("headroom_kube_evictions_report_delay_seconds_total"), 3.5);
  EXPECT_EQ(all.at("headroom_kube_api_requests_total"), 4) << "the last of its labels";
}

TEST(Kubernetes, AMissingFileHasNoMetrics) {
  test::TempDir dir;
  const std::filesystem::path files[] = {"",
                                         dir.path() / "absent",
                                         dir.write("half", "{\"kubelet"),
                                         dir.write("list", "[]"),
                                         dir.write("empty", "{}"),
                                         dir.write("word", "{\"kubelet\": \"x\"}")};
  for (const auto& file : files)
    EXPECT_TRUE(samples(file).empty()) << file;
  EXPECT_TRUE(kubernetes_json(dir.path() / "half").is_null());
  const Samples never = samples(dir.write(
      "never",
      R"({"kubelet": {"lastPollSucceeded": false, "polls": 3, "podsAt": 0, "pods": "x"}})"));
  EXPECT_EQ(never, (Samples{{"headroom_kube_kubelet_up", 0}, {"headroom_kube_polls_total", 3}}))
      << "no answer yet is no answer in 1970";
}

}  // namespace
}  // namespace headroom::report
