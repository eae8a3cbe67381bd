// SPDX-License-Identifier: Apache-2.0
// headroom-kube's status file, as the status document and the metrics have it.
#include "report/metrics/kube_metrics.h"

#include "config/temp_dir.h"
#include "report/status/status_parts.h"

#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

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
  EXPECT_EQ(all.at("headroom_kube_scheduling_advice"), 0) << "the last one that is known";
  EXPECT_EQ(all.at("headroom_kube_scheduling_writes_total"), 5) << "the last of its labels";
}

// The names of headroom-kube's metrics in the rules and dashboards that are shipped.
std::set<std::string> names_in_dashboards() {
  static const std::regex kName("headroom_kube_[a-z_]+");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("dashboards")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::sregex_iterator found(text.begin(), text.end(), kName), end; found != end; ++found)
      names.insert(found->str());
  }
  return names;
}

TEST(Kubernetes, EveryNameThatARuleOrAPanelReadsIsServed) {
  const Samples all = samples("tests/fixtures/kube/status.json");
  const std::set<std::string> names = names_in_dashboards();
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names)
    EXPECT_TRUE(all.contains(name)) << name;
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
