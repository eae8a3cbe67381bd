// SPDX-License-Identifier: Apache-2.0
// One threshold: the corners of its grammar and of its arithmetic.
#include "judge/eviction/threshold/threshold.h"

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

ThresholdValue value(const std::string& text) {
  const auto parsed = parse_threshold_value(Signal::kMemoryAvailable, text);
  EXPECT_TRUE(parsed && *parsed) << text;
  return parsed && *parsed ? **parsed : ThresholdValue{};
}

ThresholdValue reclaim(const std::string& text) {
  const auto parsed = parse_min_reclaim(Signal::kMemoryAvailable, text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : ThresholdValue{};
}

TEST(ThresholdValue, IsRejectedWithTheKubeletsMessages) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c :
       {Case{"NaN%", "eviction percentage threshold memory.available must be a number: NaN%"},
        Case{"nan%%", "eviction percentage threshold memory.available must be a number: nan%%"},
        Case{"-Inf%", "eviction percentage threshold memory.available must be >= 0%: -Inf%"},
        Case{"infinity%",
             "eviction percentage threshold memory.available must be <= 100%: "
             "infinity%"},
        Case{"1e99%", "strconv.ParseFloat: parsing \"1e99\": value out of range"},
        Case{"-1e99%", "strconv.ParseFloat: parsing \"-1e99\": value out of range"},
        Case{"+-5%", "strconv.ParseFloat: parsing \"+-5\": invalid syntax"},
        Case{"1e%", "strconv.ParseFloat: parsing \"1e\": invalid syntax"},
        Case{"1__0%", "strconv.ParseFloat: parsing \"1__0\": invalid syntax"},
        Case{"_1%", "strconv.ParseFloat: parsing \"_1\": invalid syntax"},
        Case{"0x1p3%", "strconv.ParseFloat: parsing \"0x1p3\": invalid syntax"},
        Case{"-500m", "eviction threshold memory.available must be positive: -500m"},
        Case{"5Mib",
             "quantities must match the regular expression "
             "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"}}) {
    const auto parsed = parse_threshold_value(Signal::kMemoryAvailable, c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().what, c.says);
  }
}

TEST(ThresholdValue, AValueTooSmallForAFloatIsZero) {
  EXPECT_EQ(resolve(value("1e-60%"), kMax), 0);
}

TEST(ThresholdValue, OnlyZeroAndOneHundredPercentDisableASignal) {
  for (const char* off : {"0%", "100%"}) {
    const auto parsed = parse_threshold_value(Signal::kNodeFsAvailable, off);
    ASSERT_TRUE(parsed) << off;
    EXPECT_FALSE(parsed->has_value()) << off;
  }
  for (const char* kept : {"0.0%", "00%", "-0%", "+0%", "0%%", "100.0%", "100%%", "1e2%"}) {
    const auto parsed = parse_threshold_value(Signal::kNodeFsAvailable, kept);
    ASSERT_TRUE(parsed) << kept;
    EXPECT_TRUE(parsed->has_value()) << kept;
  }
}

TEST(MinReclaim, HasSeparateBounds) {
  EXPECT_EQ(resolve(reclaim("200%"), 100), 200) << "no upper bound";
  EXPECT_EQ(resolve(reclaim("0"), 100), 0) << "a quantity may be zero";
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c :
       {Case{"0%", "eviction percentage minimum reclaim pid.available must be positive: 0%"},
        Case{"-5%", "eviction percentage minimum reclaim pid.available must be positive: -5%"},
        Case{"NaN%", "eviction percentage minimum reclaim pid.available must be positive: NaN%"},
        Case{"-1Mi", "negative eviction minimum reclaim specified for pid.available"},
        Case{"5 %", "strconv.ParseFloat: parsing \"5 \": invalid syntax"}}) {
    const auto parsed = parse_min_reclaim(Signal::kPidAvailable, c.text);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().what, c.says);
  }
}

TEST(Resolve, RoundsAsTheKubelet) {
  constexpr auto kHundredGiB = std::int64_t{100} << 30;
  EXPECT_EQ(resolve(value("10%"), kHundredGiB), 10737418400) << "not 10737418240";
  EXPECT_EQ(resolve(value("100Mi"), 1), std::int64_t{100} << 20) << "whatever the capacity";
  EXPECT_EQ(resolve(value("-0%"), kHundredGiB), 0);
  EXPECT_EQ(resolve(reclaim("1e30%"), kMax), kMax) << "saturates where Go has no answer";
  EXPECT_EQ(resolve(reclaim("Inf%"), 0), kMax);
}

Threshold threshold(const char* text, const char* min_reclaim = nullptr) {
  Threshold made{.signal = Signal::kMemoryAvailable, .value = value(text), .min_reclaim = {}};
  if (min_reclaim) made.min_reclaim = reclaim(min_reclaim);
  return made;
}

TEST(Met, IsStrict) {
  struct Case {
    const char* says;
    Threshold limit;
    std::int64_t available;
    bool met;
    bool met_with_reclaim;
  };
  for (const Case& c :
       {Case{"one_byte_short", threshold("1000"), 999, true, true},
        Case{"equal_is_not_met", threshold("1000"), 1000, false, false},
        Case{"reclaim_holds_it", threshold("1000", "500"), 1499, false, true},
        Case{"until_it_is_made_good", threshold("1000", "500"), 1500, false, false},
        Case{"percentages_add_up", threshold("10%", "5%"), 1499, false, true},
        Case{"half_a_byte_is_more_than_none", threshold("500m"), 0, true, true},
        Case{"halves_are_added_before_they_are_rounded", threshold("500m", "500m"), 1, false,
             false},
        Case{"zero_per_cent_is_never_met", threshold("0.0%"), 0, false, false},
        Case{"a_hundred_is_met_by_all_but_an_empty_node", threshold("100.0%"), 9999, true, true},
        Case{"but_not_by_that", threshold("100.0%"), 10000, false, false},
        Case{"below_nothing", threshold("1"), -5, true, true}}) {
    const Observation seen{.available = c.available, .capacity = 10000, .at = {}};
    EXPECT_EQ(met(c.limit, seen, /*enforce_min_reclaim=*/false), c.met) << c.says;
    EXPECT_EQ(met(c.limit, seen, /*enforce_min_reclaim=*/true), c.met_with_reclaim) << c.says;
  }
}

// What a reading may be too high by is added: what is really left is never below the threshold.
TEST(Met, IsEarlierByTheErrorOfTheReading) {
  for (const auto& [error, available, is_met] :
       {std::tuple{0, 1000, false}, {300, 1299, true}, {300, 1300, false}}) {
    const Observation seen{.available = available, .capacity = 10000, .at = {}, .error = error};
    EXPECT_EQ(met(threshold("1000"), seen, /*enforce_min_reclaim=*/false), is_met) << available;
    EXPECT_EQ(met(threshold("10%"), seen, /*enforce_min_reclaim=*/false), is_met) << available;
  }
}

TEST(SignalName, IsExact) {
  for (const auto known : kSignalNames)
    EXPECT_EQ(parse_signal(known).has_value(), known != "memory.pressure" &&
                                                   known != "cpu.pressure" &&
                                                   known != "kernel.memAvailable")
        << known;
  for (const char* unknown : {"", "memory", "Memory.available", "memory.available ",
                              "memory.pressure", "cpu.pressure", "kernel.memAvailable"})
    EXPECT_EQ(parse_signal(unknown).error().what,
              "unsupported eviction signal " + std::string(unknown));
}

}  // namespace
}  // namespace headroom
