// SPDX-License-Identifier: Apache-2.0
// Go durations, both ways.
#include "judge/resources/go_duration.h"

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

TEST(GoDuration, IsParsedAsByGo) {
  struct Case {
    const char* text;
    Duration span;
  };
  for (const Case& c : {Case{"0", 0s},
                        Case{"+0", 0s},
                        Case{"-0", 0s},
                        Case{"0s", 0s},
                        Case{"1m30s", 90s},
                        Case{"90s", 90s},
                        Case{"500ms", 500ms},
                        Case{"1.5s", 1500ms},
                        Case{".5s", 500ms},
                        Case{"5.s", 5s},
                        Case{"0.3s", 300ms},
                        Case{"1h0m0.5s", 1h + 500ms},
                        Case{"-1s", -1s},
                        Case{"3us", 3us},
                        Case{"3\u00b5s", 3us},
                        Case{"3\u03bcs", 3us},
                        Case{"7ns", 7ns},
                        Case{"1s1s", 2s},
                        Case{"0.9999999999s", 999'999'999ns},
                        Case{"0.00000000000000000000001h", 0s},
                        Case{"2562047h47m16.854775807s", Duration::max()}}) {
    const auto parsed = parse_go_duration(c.text);
    ASSERT_TRUE(parsed) << parsed.error().what;
    EXPECT_EQ(*parsed, c.span) << c.text;
  }
}

TEST(GoDuration, IsRejectedWithGosMessages) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c :
       {Case{"", "time: invalid duration \"\""}, Case{"-", "time: invalid duration \"-\""},
        Case{"5", "time: missing unit in duration \"5\""},
        Case{"1m30", "time: missing unit in duration \"1m30\""},
        Case{"1.", "time: missing unit in duration \"1.\""},
        Case{".s", "time: invalid duration \".s\""}, Case{"s", "time: invalid duration \"s\""},
        Case{" 1s", "time: invalid duration \" 1s\""},
        Case{"1s ", "time: unknown unit \"s \" in duration \"1s \""},
        Case{"1d", "time: unknown unit \"d\" in duration \"1d\""},
        Case{"1S", "time: unknown unit \"S\" in duration \"1S\""},
        Case{"1s-1s", "time: unknown unit \"s-\" in duration \"1s-1s\""},
        Case{"99999999999999999999s", "time: invalid duration \"99999999999999999999s\""},
        Case{"2562048h", "time: invalid duration \"2562048h\""},
        Case{"2562047h47m17s", "time: invalid duration \"2562047h47m17s\""}}) {
    const auto parsed = parse_go_duration(c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().what, c.says);
  }
}

TEST(GoDuration, IsFormattedAsByGo) {
  struct Case {
    Duration span;
    const char* text;
  };
  for (const Case& c :
       {Case{0s, "0s"}, Case{1ns, "1ns"}, Case{1100ns, "1.1\u00b5s"}, Case{2200us, "2.2ms"},
        Case{500ms, "500ms"}, Case{999'999'999ns, "999.999999ms"}, Case{1s, "1s"},
        Case{1500ms, "1.5s"}, Case{90s, "1m30s"}, Case{2min, "2m0s"}, Case{1h, "1h0m0s"},
        Case{1h + 500ms, "1h0m0.5s"}, Case{100h, "100h0m0s"}, Case{-90s, "-1m30s"},
        Case{Duration::max(), "2562047h47m16.854775807s"},
        Case{Duration::min(), "-2562047h47m16.854775808s"}})
    EXPECT_EQ(format_go_duration(c.span), c.text);
}

TEST(GoDuration, RoundTrips) {
  for (const Duration span : {Duration(1ns), Duration(1001us), Duration(59'999ms), Duration(3661s),
                              Duration(-5min), Duration::max()}) {
    const auto parsed = parse_go_duration(format_go_duration(span));
    ASSERT_TRUE(parsed) << parsed.error().what;
    EXPECT_EQ(*parsed, span);
  }
}

}  // namespace
}  // namespace headroom
