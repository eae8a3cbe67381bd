// SPDX-License-Identifier: Apache-2.0
// Every renamed metric answers under its old name with the old labels and an equal value.
#include "report/metrics/renamed_metrics.h"

#include "report/metrics/metric_family.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

const prometheus::MetricFamily* find(const Families& families, std::string_view name) {
  const auto found = std::find_if(families.begin(), families.end(),
                                  [&](const auto& family) { return family.name == name; });
  return found == families.end() ? nullptr : &*found;
}

std::string label_of(const prometheus::ClientMetric& sample, std::string_view name) {
  for (const auto& label : sample.label)
    if (label.name == name) return label.value;
  return "absent";
}

TEST(RenamedMetrics, EachAnswersUnderItsOldNameWithAnEqualValue) {
  for (const RenamedMetric& renamed : renamed_metrics()) {
    Families families;
    MetricFamilyBuilder::counter(renamed.new_name, "help")
        .add(std::uint64_t{7}, {{"slice", "a"}})
        .append_to(families);
    add_old_names(families);
    ASSERT_EQ(families.size(), 2u) << renamed.new_name;
    EXPECT_EQ(families[1].name, renamed.old_name);
    EXPECT_EQ(families[1].help, "Deprecated: renamed to " + std::string(renamed.new_name) + ".");
    EXPECT_EQ(families[1].type, families[0].type);
    EXPECT_EQ(families[1].metric.at(0).counter.value, 7);
    EXPECT_EQ(label_of(families[1].metric.at(0), "slice"), "a");
  }
}

TEST(RenamedMetrics, LabelsAndTheirValuesAreTheOldOnes) {
  Families families;
  MetricFamilyBuilder::counter("headroom_eviction_completions_total", "help")
      .add(std::uint64_t{1}, {{"outcome", "exited"}})
      .add(std::uint64_t{2}, {{"outcome", "timed_out"}})
      .append_to(families);
  add_old_names(families);
  const auto* old = find(families, "headroom_farewells_total");
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(label_of(old->metric.at(0), "ending"), "gone");
  EXPECT_EQ(label_of(old->metric.at(1), "ending"), "outlasting");
  EXPECT_EQ(label_of(old->metric.at(1), "outcome"), "absent");
}

TEST(RenamedMetrics, FamiliesThatWereSplitByUnitAreOneUnderTheOldName) {
  Families families;
  MetricFamilyBuilder::gauge("headroom_signal_available_bytes", "help")
      .add(4096.0, {{"signal", "memory.available"}})
      .append_to(families);
  MetricFamilyBuilder::gauge("headroom_signal_available_ratio", "help")
      .add(0.25, {{"signal", "memory.pressure"}})
      .append_to(families);
  add_old_names(families);
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[2].name, "headroom_signal_available");
  EXPECT_EQ(families[2].metric.at(0).gauge.value, 4096.0);
  EXPECT_EQ(families[2].metric.at(1).gauge.value, 250'000.0) << "millionths, as before";
}

TEST(RenamedMetrics, NoOldNameIsAlsoANewOne) {
  std::set<std::string_view> current;
  for (const RenamedMetric& renamed : renamed_metrics())
    current.insert(renamed.new_name);
  for (const RenamedMetric& renamed : renamed_metrics())
    EXPECT_FALSE(current.contains(renamed.old_name)) << renamed.old_name;
}

}  // namespace
}  // namespace headroom::report
