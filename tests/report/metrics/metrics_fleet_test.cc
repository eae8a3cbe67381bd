// SPDX-License-Identifier: Apache-2.0
// /metrics/fleet: few series, summed up from those of /metrics.
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

std::string text_of(const Families& families) {
  std::string text;
  for (const auto& family : families)
    append_family(text, Format::kText, family);
  return text;
}

std::size_t series(const Families& families) {
  std::size_t count = 0;
  for (const auto& family : families)
    count += family.metric.size();
  return count;
}

Families sample_families() {
  Families all;
  add_node_families(test::sample_node(), test::sample_at(10'250), all);
  add_status_families(*test::sample_status(), all);
  add_event_families(test::sample_node(), all);
  add_process_families(all);
  add_reload_families(ReloadStatus{}, all);
  return all;
}

TEST(FleetMetrics, AreAtMost30Series) {
  const Families fleet = fleet_families(sample_families());
  EXPECT_GE(series(fleet), 15u) << text_of(fleet);
  EXPECT_LE(series(fleet), kMaxFleetSeries) << text_of(fleet);
}

TEST(FleetMetrics, SumUpTheLabelsThatTheyDrop) {
  Families all;
  MetricFamilyBuilder::counter("headroom_evictions_total", "h")
      .add(std::uint64_t{2}, {{"outcome", "done"}, {"signal", "memory.available"}})
      .add(std::uint64_t{3}, {{"outcome", "done"}, {"signal", "nodefs.available"}})
      .add(std::uint64_t{1}, {{"outcome", "failed"}, {"signal", "nodefs.available"}})
      .append_to(all);
  MetricFamilyBuilder::gauge("headroom_signal_available_bytes", "h")
      .add(std::uint64_t{7}, {{"signal", "memory.available"}})
      .add(std::uint64_t{8}, {{"signal", "allocatableMemory.available"}})
      .append_to(all);
  MetricFamilyBuilder::gauge("headroom_threshold_forecast_seconds", "h")
      .add(std::uint64_t{9}, {{"kind", "hard"}, {"signal", "memory.available"}})
      .add(std::uint64_t{4}, {{"kind", "soft"}, {"signal", "memory.available"}})
      .append_to(all);
  EXPECT_EQ(text_of(fleet_families(all)),
            "# HELP headroom_signal_available_bytes h\n"
            "# TYPE headroom_signal_available_bytes gauge\n"
            "headroom_signal_available_bytes{signal=\"memory.available\"} 7\n"
            "# HELP headroom_threshold_forecast_seconds h\n"
            "# TYPE headroom_threshold_forecast_seconds gauge\n"
            "headroom_threshold_forecast_seconds{signal=\"memory.available\"} 9\n"
            "# HELP headroom_evictions_total h\n"
            "# TYPE headroom_evictions_total counter\n"
            "headroom_evictions_total{outcome=\"done\"} 5\n"
            "headroom_evictions_total{outcome=\"failed\"} 1\n");
}

TEST(FleetMetrics, AreCutOffAtTheirLimit) {
  Families all;
  auto family = MetricFamilyBuilder::gauge("headroom_condition", "h");
  for (int i = 0; i < 100; ++i)
    family.add(1.0, labels({{"condition", std::to_string(i)}}));
  family.append_to(all);
  MetricFamilyBuilder::gauge("headroom_victims", "h").add(1.0).append_to(all);
  EXPECT_EQ(series(fleet_families(all)), kMaxFleetSeries);
}

}  // namespace
}  // namespace headroom::report
