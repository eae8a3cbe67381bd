// SPDX-License-Identifier: Apache-2.0
// The parser of cgroupfs texts: what it reads, and what it refuses to read.
#include "observe/stat_text.h"

#include <headroom/abi.h>

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

struct CountCase {
  const char* name;
  std::string_view text;
  std::optional<std::uint64_t> count;
};

TEST(StatText, Counts) {
  const CountCase cases[] = {
      {"a_line", "123\n", 123},
      {"no_newline", "123", 123},
      {"zero", "0\n", 0},
      {"the_largest", "18446744073709551615\n", ~0ull},
      {"one_more_overflows", "18446744073709551616\n", std::nullopt},
      {"far_too_long", "99999999999999999999999\n", std::nullopt},
      {"empty", "", std::nullopt},
      {"only_a_newline", "\n", std::nullopt},
      {"negative", "-1\n", std::nullopt},
      {"a_plus", "+1\n", std::nullopt},
      {"a_blank_before", " 1\n", std::nullopt},
      {"a_blank_after", "1 \n", std::nullopt},
      {"two_lines", "1\n2\n", std::nullopt},
      {"a_word", "max\n", std::nullopt},
      {"a_nul", std::string_view("1\0", 2), std::nullopt},
  };
  for (const CountCase& c : cases)
    EXPECT_EQ(count_in(c.text), c.count) << c.name;
}

TEST(StatText, Limits) {
  const CountCase cases[] = {
      {"max", "max\n", HR_NO_LIMIT}, {"max_without_newline", "max", HR_NO_LIMIT},
      {"a_number", "4096\n", 4096},  {"maximum", "maximum\n", std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const CountCase& c : cases)
    EXPECT_EQ(limit_in(c.text), c.count) << c.name;
}

std::map<std::string, std::uint64_t> pairs(std::string_view text) {
  std::map<std::string, std::uint64_t> all;
  for (FlatKeyed line(text); line.next();)
    all[std::string(line.key())] = line.value();
  return all;
}

TEST(StatText, FlatKeyedSkipsWhatItCannotRead) {
  using Pairs = std::map<std::string, std::uint64_t>;
  EXPECT_EQ(pairs("anon 1\nfile 2\n"), (Pairs{{"anon", 1}, {"file", 2}}));
  EXPECT_EQ(pairs(""), Pairs{});
  EXPECT_EQ(pairs("\n\nanon 1\n"), (Pairs{{"anon", 1}}));
  EXPECT_EQ(pairs("lonely\nanon 1\n"), (Pairs{{"anon", 1}}));
  EXPECT_EQ(pairs("anon x\nfile 2\n"), (Pairs{{"file", 2}}));
  EXPECT_EQ(pairs("anon 1 2\nfile 2\n"), (Pairs{{"file", 2}}));
  EXPECT_EQ(pairs("anon 18446744073709551616\nfile 2\n"), (Pairs{{"file", 2}}));
}

TEST(StatText, FlatKeyedDropsAnUnfinishedLastLine) {
  EXPECT_EQ(pairs("anon 1\nfile 12345").count("file"), 0u);
}

TEST(StatText, PressureTotals) {
  constexpr std::string_view kBoth =
      "some avg10=1.00 avg60=2.00 avg300=3.00 total=123\n"
      "full avg10=0.00 avg60=0.00 avg300=0.00 total=45\n";
  EXPECT_EQ(pressure_total(kBoth, "some"), 123u);
  EXPECT_EQ(pressure_total(kBoth, "full"), 45u);
  // cpu.pressure before 5.13
  EXPECT_EQ(pressure_total("some avg10=1.00 avg60=2.00 avg300=3.00 total=7\n", "full"),
            std::nullopt);
  EXPECT_EQ(pressure_total("some avg10=1.00\n", "some"), std::nullopt);
  EXPECT_EQ(pressure_total("somewhat total=7\n", "some"), std::nullopt);
  EXPECT_EQ(pressure_total("some total=7", "some"), std::nullopt) << "unfinished";
  EXPECT_EQ(pressure_total("", "some"), std::nullopt);
}

}  // namespace
}  // namespace headroom::observe
