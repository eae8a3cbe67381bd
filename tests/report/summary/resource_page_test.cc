// SPDX-License-Identifier: Apache-2.0
#include "report/summary/resource_page.h"

#include "report/golden.h"
#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

SummarySetup sample_setup() {
  SummarySetup setup{.views = std::make_shared<PublishedViews>(), .wall_time = [](Instant at) {
                       return WallTime(std::chrono::seconds(1'767'225'600) + at.time_since_epoch());
                     }};
  setup.views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
  setup.views->cgroups.publish(
      [](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  return setup;
}

std::string text_of(const SummarySetup& setup, Format format) {
  ResourceMetricsBody page(setup, format);
  std::string text, room(100, '\0');
  while (const std::size_t size = page.read(room))
    text.append(room, 0, size);
  return text;
}

TEST(ResourceMetricsBody, ReadsAsTheGoldenText) {
  expect_golden("metrics/resource.prom", text_of(sample_setup(), Format::kText));
  expect_golden("metrics/resource.openmetrics", text_of(sample_setup(), Format::kOpenMetrics));
}

TEST(ResourceMetricsBody, ASwapLimitIsShownWhereThereIsOne) {
  for (const bool limited : {true, false}) {
    SummarySetup setup = sample_setup();
    setup.views->cgroups.publish([&](CgroupTable& next, const CgroupTable*) {
      next = sample_cgroups();
      for (hr_record& record : next.records)
        record.swap_max = limited ? 4096 : HR_NO_LIMIT;
    });
    const std::string text = text_of(setup, Format::kText);
    EXPECT_EQ(text.find("\ncontainer_swap_limit_bytes{container=\"app\",namespace=\"default\","
                        "pod=\"hog\"} 4096 ") != text.npos,
              limited)
        << text;
  }
}

TEST(ResourceMetricsBody, TheNodesSwapIsThatOfTheSignal) {
  SummarySetup setup = sample_setup();
  EXPECT_EQ(text_of(setup, Format::kText).find("node_swap_usage_bytes"), std::string::npos)
      << "no swap, or unknown";
  setup.views->node.publish([](NodeView& next, const NodeView*) {
    next = sample_node();
    of(next.observations, Signal::kSwapAvailable) = Observation{300, 1000, next.at};
  });
  EXPECT_NE(text_of(setup, Format::kText).find("\nnode_swap_usage_bytes 700 "), std::string::npos);
}

TEST(ResourceMetricsBody, NothingShownYetIsAnError) {
  const SummarySetup setup{.views = std::make_shared<PublishedViews>()};
  const std::string text = text_of(setup, Format::kText);
  EXPECT_NE(text.find("\nresource_scrape_error 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("node_"), std::string::npos) << text;
}

TEST(ResourceMetricsBody, APodAndItsSuccessorAreOneSeries) {
  SummarySetup setup = sample_setup();
  setup.views->cgroups.publish([](CgroupTable& next, const CgroupTable*) {
    next = sample_cgroups();
    next.pods[1].pod = sample_pod("hog", QosClass::kBurstable);
  });
  const std::string text = text_of(setup, Format::kText);
  const std::string sample = "\npod_memory_working_set_bytes{namespace=\"default\",pod=\"hog\"}";
  const std::size_t first = text.find(sample);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find(sample, first + 1), std::string::npos);
}

}  // namespace
}  // namespace headroom::report
