// SPDX-License-Identifier: Apache-2.0
// The parser of cgroupfs texts: what it reads, and what it refuses to read.
#include "observe/cgroup/stat_text.h"

#include "observe/cgroup/cgroup_files.h"

#include <headroom/bpf/abi.h>

#include <unistd.h>

#include <bitset>
#include <filesystem>
#include <fstream>
#include <initializer_list>
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

struct QuotaCase {
  const char* name;
  std::string_view text;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> quota;
};

TEST(StatText, Quotas) {
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  const QuotaCase cases[] = {
      {"none", "max 100000\n", Pair{HR_NO_LIMIT, 100000}},
      {"half_a_cpu", "50000 100000\n", Pair{50000, 100000}},
      {"no_period", "max\n", std::nullopt},
      {"empty", "", std::nullopt},
      {"words", "all of it\n", std::nullopt},
      {"negative", "-1 100000\n", std::nullopt},
  };
  for (const QuotaCase& c : cases) {
    const auto quota = quota_in(c.text);
    ASSERT_EQ(quota.has_value(), c.quota.has_value()) << c.name;
    if (!quota) continue;
    EXPECT_EQ(Pair(quota->quota, quota->period), *c.quota) << c.name;
  }
}

TEST(StatText, IoOfAllDevices) {
  struct Case {
    const char* name;
    std::string_view text;
    std::uint64_t rbytes, wbytes, rios, wios;
  };
  const Case cases[] = {
      {"one_device", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n", 1, 2, 3, 4},
      {"two_devices",
       "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n8:16 rbytes=10 wbytes=20 rios=30 wios=40\n", 11, 22,
       33, 44},
      {"more_keys", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 cost.usage=9 cost.wait=8\n", 1, 2, 3, 4},
      {"a_device_without_io", "8:0\n", 0, 0, 0, 0},
      {"an_unfinished_line_is_not_read", "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n8:16 rbytes=12", 1,
       2, 3, 4},
      {"empty", "", 0, 0, 0, 0},
  };
  for (const Case& c : cases) {
    const IoTotals totals = io_totals(c.text);
    EXPECT_EQ(totals.rbytes, c.rbytes) << c.name;
    EXPECT_EQ(totals.wbytes, c.wbytes) << c.name;
    EXPECT_EQ(totals.rios, c.rios) << c.name;
    EXPECT_EQ(totals.wios, c.wios) << c.name;
  }
}

TEST(IoTotals, ADeviceThatIsMadeOfOthersIsNotCountedBesideThem) {
  const BlockMajors majors = block_majors_in(
      "Character devices:\n  1 mem\n  9 st\n254 device-mapper\n\n"
      "Block devices:\n  8 sd\n  9 md\n253 device-mapper\n254 mdp\n259 blkext\n");
  const auto of = [](std::initializer_list<std::size_t> all) {
    std::bitset<512> set;
    for (const std::size_t major : all)
      set.set(major);
    return set;
  };
  EXPECT_EQ(majors.known, of({8, 9, 253, 254, 259}));
  EXPECT_EQ(majors.stacked, of({9, 253, 254}));
  const IoTotals totals = io_totals(
      "253:0 rbytes=5 wbytes=5 rios=5 wios=5\n8:0 rbytes=1 wbytes=2 rios=3 wios=4\n"
      "9:127 rbytes=6 wbytes=6 rios=6 wios=6\n",
      majors);
  EXPECT_EQ(totals.rbytes, 1u);
  EXPECT_EQ(totals.wios, 4u);
  EXPECT_FALSE(totals.unknown_major);
  EXPECT_TRUE(block_majors_in("").known.none());
  EXPECT_TRUE(block_majors_in("Block devices:\n512 device-mapper\n").known.none());
}

// The list of drivers, as it changes while the daemon runs.
class IoStatReaderTest : public ::testing::Test {
 protected:
  void SetUp() override { list("  8 sd\n"); }
  void TearDown() override { std::filesystem::remove(file_); }
  void list(const std::string& drivers) {
    std::ofstream(file_) << "Character devices:\n  1 mem\n\nBlock devices:\n" << drivers;
  }

  std::string file_ = ::testing::TempDir() + "/devices-" + std::to_string(::getpid());
  IoStatReader reader_{file_};
};

TEST_F(IoStatReaderTest, ADriverThatIsLoadedLaterIsKnownAtItsFirstDevice) {
  EXPECT_EQ(reader_.totals("8:0 rbytes=1 wbytes=0 rios=1 wios=0\n").rbytes, 1u);
  list("  8 sd\n253 device-mapper\n");
  const std::string both =
      "253:0 rbytes=5 wbytes=0 rios=1 wios=0\n8:0 rbytes=6 wbytes=0 rios=2 wios=0\n";
  EXPECT_EQ(reader_.totals(both).rbytes, 6u);
}

TEST_F(IoStatReaderTest, TheListIsReadOnceForANumberThatItDoesNotHave) {
  const std::string device = "77:0 rbytes=5 wbytes=0 rios=1 wios=0\n";
  EXPECT_EQ(reader_.totals(device).rbytes, 5u);
  list("  8 sd\n 77 device-mapper\n");
  EXPECT_EQ(reader_.totals(device).rbytes, 5u) << "the list was read again";
  EXPECT_EQ(reader_.totals(device + "8:0 rbytes=1 wbytes=0 rios=1 wios=0\n").rbytes, 6u);
}

}  // namespace
}  // namespace headroom::observe
