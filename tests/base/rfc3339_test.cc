// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(Rfc3339, WritesUtcInWholeSecondsOrMicroseconds) {
  const WallTime time = WallTime(seconds(1'700'000'000)) + microseconds(42);
  EXPECT_EQ(rfc3339(time), "2023-11-14T22:13:20Z");
  EXPECT_EQ(rfc3339_micro(time), "2023-11-14T22:13:20.000042Z");
  EXPECT_EQ(rfc3339(WallTime()), "1970-01-01T00:00:00Z");
}

TEST(Rfc3339, RoundsDownBefore1970) {
  EXPECT_EQ(rfc3339_micro(WallTime(microseconds(-1))), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(rfc3339(WallTime(microseconds(-1))), "1969-12-31T23:59:59Z");
}

TEST(Rfc3339, ReadsWhatItWrites) {
  for (const std::int64_t count : {0L, 1L, 999'999L, 1'700'000'000'000'042L}) {
    const WallTime time{microseconds(count)};
    EXPECT_EQ(parse_rfc3339(rfc3339_micro(time)), time) << count;
    EXPECT_EQ(parse_rfc3339(rfc3339(time)), std::chrono::floor<seconds>(time)) << count;
  }
}

TEST(Rfc3339, ReadsOneToNineDigitsAfterThePoint) {
  const WallTime base = WallTime(seconds(1'700'000'000));
  EXPECT_EQ(parse_rfc3339("2023-11-14T22:13:20.5Z"), base + microseconds(500'000));
  EXPECT_EQ(parse_rfc3339("2023-11-14T22:13:20.123456789Z"), base + microseconds(123'456));
}

TEST(Rfc3339, RefusesATimeThatIsNoNumberOfNanosecondsSince1970) {
  EXPECT_TRUE(parse_rfc3339("2262-01-01T00:00:00Z"));
  for (const char* text : {"2263-01-01T00:00:00Z", "9121-11-20T23:00:00Z", "1969-12-31T23:59:59Z"})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

TEST(Rfc3339, RefusesOtherText) {
  for (const char* text : {"", "2023-11-14", "2023-11-14T22:13:20", "2023-11-14T22:13:20+01:00",
                           "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20.1234567890Z",
                           "2023-11-14T22:13:20.12a4Z", "2023-11-14T22:13:20ZZ"})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

}  // namespace
}  // namespace headroom
