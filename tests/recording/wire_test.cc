// SPDX-License-Identifier: Apache-2.0
// Values there and back, and bytes that are none.
#include "recording/pods_delta.h"
#include "recording/shapes.h"

#include <array>
#include <limits>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace headroom::recording {
namespace {

using namespace std::chrono_literals;

template <class T>
T there_and_back(const T& value, Instant base = Instant(5s)) {
  std::string bytes;
  InternTables written, read;
  Writer(bytes, written, base)(value);
  Reader reader(bytes, read, base);
  T back{};
  reader(back);
  EXPECT_TRUE(reader.good());
  EXPECT_TRUE(reader.at_end());
  return back;
}

template <class T>
bool is_read_back(const T& value) {
  std::string bytes;
  InternTables written, read;
  Writer(bytes, written, {})(value);
  Reader reader(bytes, read, {});
  T back{};
  reader(back);
  return reader.good();
}

TEST(Wire, NumbersSurvive) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63}, std::int64_t{64},
        std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(there_and_back(value), value);
  EXPECT_EQ(there_and_back(HR_UNKNOWN), HR_UNKNOWN);
  EXPECT_EQ(there_and_back(-0.1), -0.1);
  EXPECT_EQ(there_and_back(0.1F), 0.1F);
}

TEST(Wire, NoRateIsEndless) {
  for (const double bad :
       {std::numeric_limits<double>::infinity(), -0x1p61, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(is_read_back(bad)) << bad;
  EXPECT_EQ(there_and_back(0x1p60), 0x1p60);
}

TEST(Wire, InstantsSurviveAndNeverStaysNever) {
  EXPECT_EQ(there_and_back(Instant{}), Instant{});
  EXPECT_EQ(there_and_back(Instant(5s)), Instant(5s));
  EXPECT_EQ(there_and_back(Instant(1ns)), Instant(1ns));
}

// Added to another one it would not fit into 64 bits.
TEST(Wire, AnInstantFartherThanAnyMachineRunsIsRefused) {
  EXPECT_EQ(there_and_back(Instant(kFarthest), Instant{}), Instant(kFarthest));
  for (const Duration beyond : {kFarthest + 1ns, -kFarthest - 1ns, Duration::max()}) {
    std::string bytes;
    InternTables written, read;
    Writer(bytes, written, Instant{})(Instant(beyond));
    Reader reader(bytes, read, Instant{});
    Instant back{};
    reader(back);
    EXPECT_FALSE(reader.good()) << beyond.count();
    EXPECT_EQ(back, Instant{});
  }
}

TEST(Wire, AnInstantNearTheFramesTakesLittleRoom) {
  std::string bytes;
  InternTables intern_tables;
  Writer(bytes, intern_tables, Instant(1'000'000s))(Instant(1'000'000s + 5us));
  EXPECT_LE(bytes.size(), 3u);
}

TEST(Wire, QuantitiesSurviveExactly) {
  for (const char* text : {"0", "512Mi", "1500m", "1n", "10G", "-3", "4Ei", "1e3"}) {
    const Quantity value = *Quantity::parse(text);
    EXPECT_EQ(there_and_back(value), value) << text;
    EXPECT_EQ(there_and_back(value).format(), value.format()) << text;
  }
}

TEST(Wire, ASharedPodIsWrittenOnceAndStaysOne) {
  auto pod = std::make_shared<Pod>();
  pod->name = "web";
  pod->containers.emplace_back().requests["memory"] = *Quantity::parse("1Gi");
  pod->placement.tolerations.push_back({.key = "k", .seconds = 30s});
  const std::shared_ptr<const Pod> shared = pod, none;
  std::string bytes;
  InternTables written, read;
  Writer(bytes, written, {})(shared, none);
  const std::size_t once = bytes.size();
  Writer(bytes, written, {})(shared);
  EXPECT_EQ(bytes.size(), once + 1);
  Reader reader(bytes, read, {});
  std::shared_ptr<const Pod> first, null_pod = shared, again;
  reader(first, null_pod, again);
  ASSERT_TRUE(reader.good() && reader.at_end());
  EXPECT_EQ(first, again);
  EXPECT_EQ(null_pod, nullptr);
  EXPECT_EQ(first->name, "web");
  EXPECT_EQ(first->containers[0].requests.at("memory"), *Quantity::parse("1Gi"));
  EXPECT_EQ(first->placement, pod->placement);
}

struct Bad {
  const char* name;
  std::string bytes;
};
class BadBytes : public testing::TestWithParam<Bad> {};

TEST_P(BadBytes, MakeTheReaderBadAndNothingElse) {
  InternTables intern_tables;
  Reader reader(GetParam().bytes, intern_tables, {});
  History history;
  reader(history);
  EXPECT_FALSE(reader.good());
}

INSTANTIATE_TEST_SUITE_P(Rows, BadBytes,
                         testing::Values(Bad{"none", ""},
                                         Bad{"endless_number", std::string(11, '\xff')},
                                         Bad{"huge_vector", "\xff\xff\xff\xff\x7f"},
                                         Bad{"ends_early", std::string("\x01\x01", 2)}),
                         [](const auto& row) { return row.param.name; });

TEST(Wire, WhatIsMissingWhereTheJudgeReliesOnItIsRefused) {
  const auto pod = std::make_shared<const Pod>();
  const auto taint = std::make_shared<const Taint>();
  EXPECT_TRUE(is_read_back(Policy{.taints = {taint}}));
  EXPECT_FALSE(is_read_back(Policy{.taints = {taint, nullptr}}));
  EXPECT_TRUE(is_read_back(Reason{}));
  EXPECT_TRUE(is_read_back(Reason{.cause = Cause::kTaint, .taint = taint}));
  EXPECT_FALSE(is_read_back(Reason{.cause = Cause::kTaint}));
  EXPECT_TRUE(is_read_back(Decision{.act = Act::kReclaim}));
  EXPECT_TRUE(is_read_back(Decision{.act = Act::kKill, .pod = pod}));
  EXPECT_FALSE(is_read_back(Decision{.act = Act::kKill}));
  EXPECT_TRUE(is_read_back(EvictionEnd{.pod = pod}));
  EXPECT_FALSE(is_read_back(EvictionEnd{}));
  EXPECT_TRUE(is_read_back(Victim{.pod = pod}));
  EXPECT_FALSE(is_read_back(Victim{}));
  EXPECT_TRUE(is_read_back(MemoryHighOverride{.pod = pod}));
  EXPECT_FALSE(is_read_back(MemoryHighOverride{}));
}

TEST(Wire, APodThatIsTwiceInATurnIsRefused) {
  const auto pod = std::make_shared<const Pod>();
  const DiskUsage disk;
  const auto is_read = [&](CgroupId first, CgroupId second) {
    const std::array pods{PodReading{.pod = pod, .cgroup = first, .disk = &disk},
                          PodReading{.pod = pod, .cgroup = second, .disk = nullptr}};
    std::string bytes;
    InternTables written, read;
    Writer writer(bytes, written, {});
    PodsDelta().write(writer, pods);
    Reader reader(bytes, read, {});
    PodsDelta delta;
    return reader.good() && (delta.read(reader), reader.good());
  };
  EXPECT_TRUE(is_read(CgroupId{2}, CgroupId{3}));
  EXPECT_FALSE(is_read(CgroupId{2}, CgroupId{2}));
}

TEST(Wire, AnEnumeratorBeyondTheLastIsRefused) {
  InternTables intern_tables;
  Reader reader("\x7f", intern_tables, {});
  Signal signal{};
  reader(signal);
  EXPECT_FALSE(reader.good());
  EXPECT_EQ(signal, Signal{});
}

}  // namespace
}  // namespace headroom::recording
