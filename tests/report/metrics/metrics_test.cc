// SPDX-License-Identifier: Apache-2.0
// The daemon's own families, and what a whole scrape is made of.
#include "report/metrics/metrics.h"

#include "report/golden.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/sample.h"

#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string text_of(const Families& families) {
  std::string text;
  for (const auto& family : families)
    append_family(text, Format::kText, family);
  return text;
}

std::string text_of(std::unique_ptr<ResponseBody> body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body->read(room))
    text.append(room, 0, size);
  return text;
}

Metrics metrics(bool container_names, bool old_names = true) {
  auto views = std::make_shared<PublishedViews>();
  views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  return Metrics({.views = views,
                  .container_names = container_names,
                  .old_names = old_names,
                  .now = [] { return sample_at(10'250); },
                  .wall_time = [](Instant at) { return WallTime(at.time_since_epoch()); }});
}

TEST(Metrics, NodeReadsAsTheGoldenText) {
  Families families;
  add_node_families(sample_node(), sample_at(10'250), families);
  add_event_families(sample_node(), families);
  add_wait_families(sample_node(), families);
  add_forecast_families(sample_forecasts(), families);
  expect_golden("metrics/node.prom", text_of(families));
}

TEST(Metrics, NoTwoSamplesHaveTheSameNameAndLabels) {
  std::istringstream text(text_of(metrics(true).all(Format::kText)));
  std::set<std::string> seen;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Metrics, BeforeTheFirstPublicationThereAreProcessMetricsOnly) {
  const Metrics none(
      {.views = std::make_shared<PublishedViews>(), .now = [] { return sample_at(0); }});
  const std::string page = text_of(none.all(Format::kOpenMetrics));
  EXPECT_NE(page.find("headroom_thread_cpu_seconds_total{thread=\"loop\"} "), std::string::npos);
  EXPECT_EQ(page.find("headroom_mode"), std::string::npos);
  EXPECT_EQ(page.find("container_"), std::string::npos);
  EXPECT_TRUE(page.ends_with("\n# EOF\n"));
  EXPECT_EQ(text_of(none.cadvisor(Format::kText)), "");
}

TEST(Metrics, CompatibilityNamesCanBeTurnedOff) {
  EXPECT_NE(text_of(metrics(true).all(Format::kText)).find("\ncontainer_threads{"),
            std::string::npos);
  const std::string without = text_of(metrics(false).all(Format::kText));
  EXPECT_EQ(without.find("container_"), std::string::npos);
  EXPECT_NE(without.find("headroom_mode"), std::string::npos);
  EXPECT_NE(without.find("headroom_cgroup_memory_high_bytes{"), std::string::npos);
}

std::set<std::string> families_of(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# TYPE ")) names.insert(line.substr(7, line.find(' ', 7) - 7));
  return names;
}

TEST(Metrics, OldNamesCanBeTurnedOff) {
  const auto with = families_of(text_of(metrics(true).all(Format::kText)));
  const auto without = families_of(text_of(metrics(true, false).all(Format::kText)));
  std::size_t old_names = 0;
  for (const std::string& name : with)
    if (!without.contains(name)) ++old_names;
  EXPECT_GT(old_names, 20u);
  EXPECT_EQ(with.size(), without.size() + old_names) << "no other family depends on the switch";
  const auto both = {"headroom_threshold_below", "headroom_farewells_total",
                     "headroom_stall_seconds_total"};
  for (const char* name : both) {
    EXPECT_TRUE(with.contains(name)) << name;
    EXPECT_FALSE(without.contains(name)) << name;
  }
  EXPECT_TRUE(without.contains("headroom_threshold_crossed"));
  EXPECT_TRUE(without.contains("headroom_memory_stall_seconds_total"));
}

TEST(Metrics, TheCadvisorPageHasThemWhateverTheSwitchSays) {
  const std::string page = text_of(metrics(false).cadvisor(Format::kText));
  EXPECT_NE(page.find("\ncontainer_threads{"), std::string::npos);
  EXPECT_NE(page.find("\nmachine_cpu_cores "), std::string::npos);
  EXPECT_NE(page.find("\nmachine_memory_bytes "), std::string::npos);
  EXPECT_EQ(page.find("headroom_"), std::string::npos);
  EXPECT_EQ(page.find("kubelet_node_name"), std::string::npos) << "not cAdvisor's";
}

TEST(Metrics, LastSeenIsTheReadingsTimeAndNotTheScrapes) {
  EXPECT_NE(text_of(metrics(true).cadvisor(Format::kText)).find("} 9.5\n"), std::string::npos);
}

}  // namespace
}  // namespace headroom::report
