// SPDX-License-Identifier: Apache-2.0
// Traces of each format, in small files of the published shape, and what is wrong with broken ones.
#include "simulate/trace/trace_reader.h"
#include "support/story.h"

#include <gtest/gtest.h>

namespace headroom::simulate {
namespace {

using namespace std::chrono_literals;

Trace read(TraceFormat format, std::string text, std::string_view flavours = {}) {
  auto trace = read_trace(format, "t.csv", std::move(text), flavours);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().front());
  return trace ? *trace : Trace{};
}

TraceErrors errors_of(TraceFormat format, std::string text, std::string_view flavours = {}) {
  const auto trace = read_trace(format, "t.csv", std::move(text), flavours);
  EXPECT_FALSE(trace);
  return trace ? TraceErrors{} : trace.error();
}

TEST(TraceReader, ReadsSharesOfLimits) {
  const Trace trace = read(TraceFormat::kMemoryShare,
                           "value,timestamp_anon,container_ip\n"
                           "0.5,1000.0,b\n0.25,1000.0,a\n0.75,1057.0,b\r\n");
  ASSERT_EQ(trace.series.size(), 2u);
  EXPECT_EQ(trace.series[0]->name, "a");
  EXPECT_EQ(trace.series[1]->values, (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(trace.series[1]->at, (std::vector<Duration>{0s, 57s}));
  EXPECT_EQ(trace.series[1]->limit, 1);
}

TEST(TraceReader, ReadsAlibaba2018InAnyOrderOfTime) {
  const Trace trace = read(TraceFormat::kAlibaba2018,
                           "c_1,m_2,120,3,60,,,,0,0,1\n"
                           "c_1,m_2,60,2,40,1.2,0.1,3,0,0,1\n"
                           "c_1,m_2,180,2,,,,,,,\n");
  ASSERT_EQ(trace.series.size(), 1u);
  EXPECT_EQ(trace.series[0]->values, (std::vector<double>{40, 60})) << "a missing value is skipped";
  EXPECT_EQ(trace.series[0]->limit, 100);
}

TEST(TraceReader, ReadsGoogle2019ByColumnNames) {
  const Trace trace = read(TraceFormat::kGoogle2019,
                           "start_time,end_time,collection_id,instance_index,machine_id,"
                           "average_usage.cpus,average_usage.memory,assigned_memory\n"
                           "300000000,600000000,11,0,9,0.1,0.02,0.05\n"
                           "600000000,900000000,11,0,9,0.1,0.03,0.05\n");
  ASSERT_EQ(trace.series.size(), 1u);
  EXPECT_EQ(trace.series[0]->name, "11-0");
  EXPECT_EQ(trace.series[0]->at.back(), 300s);
  EXPECT_EQ(trace.series[0]->limit, 0.05);
}

TEST(TraceReader, ReadsAzureV2Arrivals) {
  const Trace trace = read(TraceFormat::kAzureV2,
                           "vm2,s,d,600,900,9,1,5,Unknown,>24,>64\n"
                           "vm1,s,d,0,86400,9,1,5,Interactive,2,4\n");
  ASSERT_EQ(trace.arrivals.size(), 2u);
  EXPECT_EQ(trace.arrivals[0].runs, Duration(24h));
  EXPECT_EQ(trace.arrivals[0].milli_cpu, 2000);
  EXPECT_EQ(trace.arrivals[1].memory, 64_GiB);
}

TEST(TraceReader, ReadsAzureV1ArrivalsByFlavour) {
  const Trace trace =
      read(TraceFormat::kAzureV1, "300 g,|,b,g,|\n600 b,|\n", "2,3.5 g\n1,1.75 b\n");
  ASSERT_EQ(trace.arrivals.size(), 4u);
  EXPECT_EQ(trace.arrivals[0].milli_cpu, 2000);
  EXPECT_EQ(trace.arrivals[3].at, 600s);
  EXPECT_FALSE(trace.arrivals[3].runs);
}

TEST(TraceReader, ReadsTheUseOfPodsInARecording) {
  Policy policy;
  policy.thresholds = {headroom::test::memory_below(100_MiB)};
  headroom::test::Story story(policy);
  const auto web = story.pod("web", 300_MiB);
  for (std::int64_t ms = 0; ms <= 2000; ms += 1000) {
    story.record(web).memory_usage = static_cast<std::uint64_t>((300 + ms) << 20);
    story.step(ms, 1_GiB);
  }
  const Trace trace = read(TraceFormat::kRecording, story.recorded());
  ASSERT_EQ(trace.series.size(), 1u);
  EXPECT_EQ(trace.series[0]->values.size(), 3u);
  EXPECT_EQ(trace.series[0]->values[2], 2300.0 * (1 << 20));
}

TEST(TraceReader, ReportsEveryErrorWithItsLine) {
  EXPECT_EQ(
      errors_of(TraceFormat::kMemoryShare,
                "value,timestamp_anon,container_ip\n"
                "0.5,1000,a\nx,1057,a\n0.5,1114\n0.5,900,a\n-1,1171,a\nnan,1171,a\n"),
      (TraceErrors{"t.csv:3: value is \"x\": expected a number of zero or more",
                   "t.csv:4: the line has 2 columns, the header 3",
                   "t.csv:5: the time of a goes from 1000 (line 2) to 900: expected a later time",
                   "t.csv:6: value is \"-1\": expected a number of zero or more",
                   "t.csv:7: value is \"nan\": expected a number of zero or more"}));
}

TEST(TraceReader, AClockThatJumpsIsAnError) {
  EXPECT_EQ(errors_of(TraceFormat::kAlibaba2018,
                      "c_1,m,60,2,40,,,,,,\nc_1,m,90060,2,40,,,,,,\nc_1,m,60,2,41,,,,,,\n"),
            (TraceErrors{"t.csv:3: c_1 has a second value for the time of line 1",
                         "t.csv:2: the time of c_1 jumps by 90000 s after line 1: expected less "
                         "than a day"}));
  EXPECT_EQ(errors_of(TraceFormat::kAzureV1, "600 g\n300 g\n", "1,2 g\n"),
            (TraceErrors{"t.csv:2: the time goes from 600 to 300: expected a later time"}));
}

TEST(TraceReader, RefusesFilesOfAnotherShape) {
  struct Case {
    TraceFormat format;
    const char* text;
    const char* error;
  };
  const Case cases[] = {
      {TraceFormat::kMemoryShare, "", "t.csv:1: the file is empty: expected a header"},
      {TraceFormat::kMemoryShare, "a,b\n", "t.csv:1: the header has no column value"},
      {TraceFormat::kGoogle2019, "start_time\n", "t.csv:1: the header has no column collection_id"},
      {TraceFormat::kAlibaba2018, "c,m,60\n", "t.csv:1: the line has 3 columns: expected 11"},
      {TraceFormat::kAlibaba2018, "c,m,60,1,101,,,,,,\n",
       "t.csv:1: mem_util_percent is 101: expected at most 100"},
      {TraceFormat::kAzureV2, "v,s,d,9,3,1,1,1,x,2,4\n", "t.csv:1: vmdeleted is before vmcreated"},
      {TraceFormat::kAzureV1, "300 z\n",
       "t.csv:1: the flavour \"z\" is not in the file of flavours"},
      {TraceFormat::kRecording, "x", "t.csv: not a recording"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(errors_of(each.format, each.text, "1,2 g\n").front().substr(0, 30),
              std::string(each.error).substr(0, 30));
}

TEST(TraceReader, LeavesLinesWithErrorsOutOnRequest) {
  TraceErrors skipped;
  const auto trace =
      read_trace(TraceFormat::kAlibaba2018, "t.csv",
                 "c_1,m,60,2,40,,,,,,\nc_1,m,60,2,41,,,,,,\nc_1,m,120,2,x,,,,,,\n", {}, &skipped);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->series[0]->values, std::vector<double>{40});
  EXPECT_EQ(skipped.size(), 2u);
  EXPECT_FALSE(read_trace(TraceFormat::kAlibaba2018, "t.csv", "broken\n", {}, &skipped));
}

TEST(TraceReader, CountsTheErrorsThatItDoesNotShow) {
  std::string text;
  for (int i = 0; i < 80; ++i)
    text += "broken\n";
  const auto errors = errors_of(TraceFormat::kAlibaba2018, text);
  ASSERT_EQ(errors.size(), kMaxTraceErrors + 1);
  EXPECT_EQ(errors.back(), "t.csv: 30 more errors");
}

}  // namespace
}  // namespace headroom::simulate
