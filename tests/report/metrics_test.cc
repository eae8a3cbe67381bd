// SPDX-License-Identifier: Apache-2.0
// The exposition text as a scraper sees it.
#include "report/metrics.h"

#include "report/golden.h"
#include "report/sample.h"

#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string text_of(const Families& families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

std::string containers_text(const CgroupTable& table) {
  Families families;
  add_container_families(table, families);
  return text_of(families);
}

TEST(Metrics, NodeReadsAsTheGoldenText) {
  Families families;
  add_node_families(sample_node(), sample_at(10'250), families);
  add_event_families(sample_node(), families);
  expect_golden("metrics/node.prom", text_of(families));
}

TEST(Metrics, ContainersReadAsTheGoldenText) {
  expect_golden("metrics/containers.prom", containers_text(sample_cgroups()));
}

TEST(Metrics, AnUnknownGroupHasNoSample) {
  const std::string text = containers_text(sample_cgroups());
  EXPECT_EQ(text.find("poduid_quiet"), std::string::npos);
  EXPECT_EQ(text.find("18446744073709"), std::string::npos) << "an unknown was printed";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_FALSE(line.starts_with("container_pressure") && line.find("poduid_web") != line.npos)
        << line;
}

TEST(Metrics, AKnownGroupWithAnUnknownFieldLeavesOutThatField) {
  CgroupTable table = sample_cgroups();
  for (hr_record& record : table.records)
    record.swap_usage = HR_UNKNOWN;  // no swap in the kernel
  const std::string text = containers_text(table);
  EXPECT_EQ(text.find("container_memory_swap"), std::string::npos);
  EXPECT_NE(text.find("container_memory_usage_bytes{"), std::string::npos);
}

TEST(Metrics, NoTwoSamplesHaveTheSameNameAndLabels) {
  Families families;
  add_node_families(sample_node(), sample_at(10'250), families);
  add_event_families(sample_node(), families);
  add_container_families(sample_cgroups(), families);
  std::istringstream text(text_of(families));
  std::set<std::string> seen;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Metrics, NothingShownYetIsAnEmptyScrape) {
  const Metrics metrics({.shown = std::make_shared<Shown>(), .now = [] { return sample_at(0); }});
  EXPECT_TRUE(metrics.Collect().empty());
}

TEST(Metrics, CompatibilityNamesCanBeTurnedOff) {
  auto shown = std::make_shared<Shown>();
  shown->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  shown->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  const auto now = [] { return sample_at(10'250); };
  const Metrics with({.shown = shown, .container_names = true, .now = now});
  const Metrics without({.shown = shown, .container_names = false, .now = now});
  EXPECT_NE(text_of(with.Collect()).find("\ncontainer_threads{"), std::string::npos);
  EXPECT_EQ(text_of(without.Collect()).find("container_"), std::string::npos);
  EXPECT_NE(text_of(without.Collect()).find("headroom_mode"), std::string::npos);
}

}  // namespace
}  // namespace headroom::report
