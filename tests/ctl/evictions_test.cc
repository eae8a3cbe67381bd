// SPDX-License-Identifier: Apache-2.0
// The audit log, read back.
#include "ctl/common/commands.h"
#include "report/eviction/audit_line.h"
#include "report/golden.h"
#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

using namespace std::chrono_literals;

std::string sample_line() {
  const WallTime at(1'700'000'000s);
  std::string line = report::audit_line(test::sample_eviction(), at, nullptr);
  line.pop_back();
  return line;
}

TEST(Evictions, ReadAsTheGoldenText) {
  std::size_t unreadable = 0;
  test::expect_golden("top/evictions.txt", render_evictions({sample_line()}, {}, unreadable));
  EXPECT_EQ(unreadable, 0u);
}

TEST(Evictions, InvalidLinesAreCountedAndSkipped) {
  std::size_t unreadable = 0;
  EXPECT_EQ(render_evictions({"{half", "[]", "7"}, {}, unreadable), "no evictions\n");
  EXPECT_EQ(unreadable, 3u);
}

TEST(Evictions, PressureIsShownInPercentAndUsageInBytes) {
  std::size_t unreadable = 0;
  const std::string text = render_evictions(
      {R"({"signal":"memory.pressure","kind":"soft","available":650000,"threshold":800000,)"
       R"("usage":1073741824,"memory_returned":536870912})"},
      {}, unreadable);
  for (const char* part : {"65.0%", "80.0%", "1Gi", "512Mi"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(Evictions, ARecordOfAnotherVersionShowsDashes) {
  std::size_t unreadable = 0;
  EXPECT_NE(render_evictions({R"({"pod":"odd"})"}, {}, unreadable).find("-/-"), std::string::npos);
  EXPECT_EQ(unreadable, 0u);
}

}  // namespace
}  // namespace headroom::ctl
