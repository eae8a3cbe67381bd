// SPDX-License-Identifier: Apache-2.0
// Every renamed metric answers under its old name with the old labels and an equal value.
#include "report/metrics/renamed_metrics.h"

#include "report/metrics/metric_family.h"
#include "report/sample.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <utility>

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

TEST(RenamedMetrics, OnlyTheOldNameOfPartialEvictionsKeepsTheOldOutcome) {
  Families families;
  MetricFamilyBuilder::counter("headroom_partial_evictions_total", "help")
      .add(std::uint64_t{3}, {{"outcome", "dry_run"}, {"unit", "process"}})
      .append_to(families);
  add_old_names(families);
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(label_of(families[0].metric.at(0), "outcome"), "dry_run");
  EXPECT_EQ(families[1].name, "headroom_part_kills_total");
  EXPECT_EQ(label_of(families[1].metric.at(0), "outcome"), "pretended");
  EXPECT_EQ(label_of(families[1].metric.at(0), "unit"), "process");
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

std::string scrape(std::vector<CgroupFamilyAlias> aliases) {
  Published<CgroupTable> published;
  published.publish([](CgroupTable& next, const CgroupTable*) { next = test::sample_cgroups(); });
  ScrapeSetup setup;
  setup.cgroups = published.latest();
  setup.aliases = std::move(aliases);
  ScrapeBody body(std::move(setup));
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

// Its samples, each without the name.
std::multiset<std::string> samples_of(const std::string& text, std::string_view name) {
  std::multiset<std::string> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(std::string(name) + "{")) samples.insert(line.substr(name.size()));
  return samples;
}

TEST(RenamedMetrics, FamiliesOfCgroupsAnswerUnderBothNames) {
  const auto aliases = old_cgroup_names();
  ASSERT_FALSE(aliases.empty());
  const std::string text = scrape(aliases);
  for (const CgroupFamilyAlias& alias : aliases) {
    SCOPED_TRACE(alias.name);
    const auto current = samples_of(text, alias.family);
    EXPECT_FALSE(current.empty());
    EXPECT_EQ(samples_of(text, alias.name), current);
    const std::string header = "# HELP " + std::string(alias.name) + " Deprecated: renamed to " +
                               std::string(alias.family) + ".\n";
    const std::size_t first = text.find(header);
    EXPECT_NE(first, std::string::npos);
    EXPECT_EQ(text.find(header, first + 1), std::string::npos) << "one header a family";
  }
}

TEST(RenamedMetrics, WithoutAliasesCgroupsHaveTheNewNamesAlone) {
  const std::string text = scrape({});
  for (const CgroupFamilyAlias& alias : old_cgroup_names()) {
    EXPECT_FALSE(samples_of(text, alias.family).empty()) << alias.family;
    EXPECT_EQ(text.find(std::string(alias.name) + "{"), std::string::npos) << alias.name;
  }
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
