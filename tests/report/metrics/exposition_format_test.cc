// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/exposition_text.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

TEST(WantedFormat, FollowsTheAcceptHeader) {
  struct Case {
    const char* name;
    const char* accept;
    Format format;
  };
  constexpr Case kCases[] = {
      {"none", "", Format::kText},
      {"prometheus_2_42",
       "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
       "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       Format::kOpenMetrics},
      {"a_browser", "text/html,application/xhtml+xml,*/*;q=0.8", Format::kText},
      {"text_liked_better", "application/openmetrics-text;q=0.3, text/plain;q=0.9", Format::kText},
      {"liked_the_same", "text/plain, application/openmetrics-text", Format::kOpenMetrics},
      {"refused", "application/openmetrics-text;q=0, text/plain", Format::kText},
      {"a_version_to_come", "application/openmetrics-text;version=2.0.0", Format::kText},
      {"case_and_blanks", " Application/OpenMetrics-Text ; Version=1.0.0 ; Q=0.5 ",
       Format::kOpenMetrics},
      {"nonsense", ";;,=,q=x,application/openmetrics-text;q=banana", Format::kText},
  };
  for (const Case& each : kCases)
    EXPECT_EQ(negotiate_format(each.accept), each.format) << each.name;
}

}  // namespace
}  // namespace headroom::report
