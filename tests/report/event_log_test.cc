// SPDX-License-Identifier: Apache-2.0
// The numbered events of the node, and what makes one.
#include "report/view/event_log.h"

#include "report/event_source.h"
#include "report/sample.h"

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr WallTime kTime{1'700'000'000s};

Json page(const EventLog& log, std::uint64_t after = 0) {
  return Json::parse(log.json(after));
}

TEST(EventLog, AnEmptyLogHasNoNumbers) {
  const EventLog log("a");
  EXPECT_EQ(log.json(0), R"({"instance":"a","first":0,"last":0,"events":[]})");
}

TEST(EventLog, AReaderGetsWhatIsNewer) {
  EventLog log("a");
  log.add("condition", kTime, {{"condition", "MemoryPressure"}, {"status", true}});
  log.add("condition", kTime, {{"condition", "MemoryPressure"}, {"status", false}});
  EXPECT_EQ(page(log).at("events").size(), 2u);
  const Json one = page(log, 1).at("events");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(
      one[0].dump(),
      R"({"condition":"MemoryPressure","seq":2,"status":false,"time":"2023-11-14T22:13:20.000000Z","type":"condition"})");
  for (const std::uint64_t after : {std::uint64_t{2}, std::uint64_t{99}, ~std::uint64_t{0}})
    EXPECT_TRUE(page(log, after).at("events").empty()) << after;
}

TEST(EventLog, OldEventsGoAndTheirNumbersTell) {
  EventLog log("a");
  for (std::size_t i = 0; i < EventLog::kSize + 10; ++i)
    log.add("drift", kTime, Json::object());
  const Json all = page(log);
  EXPECT_EQ(all.at("first"), 11);
  EXPECT_EQ(all.at("last"), EventLog::kSize + 10);
  EXPECT_EQ(all.at("events").size(), EventLog::kMaxPage);
  EXPECT_EQ(all.at("events")[0].at("seq"), 11);
  EXPECT_EQ(page(log, EventLog::kSize + 9).at("events").size(), 1u);
}

TEST(EventLog, ReadersAndTheLoopDoNotDisturbEachOther) {
  EventLog log("a");
  std::thread reader([&] {
    for (int i = 0; i < 200; ++i)
      EXPECT_TRUE(page(log).at("events").is_array());
  });
  for (int i = 0; i < 500; ++i)
    log.add("drift", kTime, {{"slice", std::string(100, 'x')}});
  reader.join();
  log.flush();
  EXPECT_EQ(page(log).at("last"), 500);
  EXPECT_EQ(log.lost(), 0u);
}

class EventSourceTest : public testing::Test {
 protected:
  Json last() {
    const Json events = page(log_).at("events");
    return events.empty() ? Json() : events.back();
  }
  std::size_t count() { return page(log_).at("events").size(); }

  EventLog log_{"a"};
  EventSource source_{log_, nullptr, [](Instant) { return kTime; }};
};

TEST_F(EventSourceTest, ANodeConditionIsAnEventWhenItChanges) {
  std::array<bool, kConditions> conditions{};
  source_.update_conditions(conditions, {});
  EXPECT_EQ(count(), 0u);
  conditions[0] = true;
  source_.update_conditions(conditions, {});
  source_.update_conditions(conditions, {});
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(last().at("condition"), kConditionNames[0]);
  EXPECT_EQ(last().at("status"), true);
}

TEST_F(EventSourceTest, AnEvictionBeginsAndEnds) {
  Eviction eviction;
  eviction.decision.pod = test::sample_pod("hog", QosClass::kBestEffort);
  eviction.message = "The node was low on resource: memory.";
  source_.add_eviction(eviction, "began");
  EXPECT_EQ(last().at("pod").at("name"), "hog");
  EXPECT_EQ(last().at("signal"), "memory.available");
  EXPECT_FALSE(last().contains("outcome"));
  eviction.ending = Ending::kFailed;
  eviction.error = EBUSY;
  source_.add_eviction(eviction, "ended");
  EXPECT_EQ(last().at("outcome"), "failed");
  EXPECT_EQ(last().at("error"), "Device or resource busy");
  EXPECT_TRUE(last().at("memory_returned").is_null());
}

TEST_F(EventSourceTest, DriftIsWhatAnotherProgramChangedSinceTheLastView) {
  const auto view = [](std::uint64_t drift) {
    auto slices = std::make_shared<SlicesView>();
    slices->slices.push_back({.path = "/kubepods.slice", .drift = {{"memory.max", drift}}});
    return slices;
  };
  source_.update_slices(view(3), {});
  EXPECT_EQ(count(), 0u) << "what happened before the first view is not news";
  source_.update_slices(view(3), {});
  EXPECT_EQ(count(), 0u);
  source_.update_slices(view(4), {});
  EXPECT_EQ(last().at("slice"), "/kubepods.slice");
  EXPECT_EQ(last().at("setting"), "memory.max");
  source_.update_slices(nullptr, {});
  EXPECT_EQ(count(), 1u);
}

TEST_F(EventSourceTest, AKillByTheKernelNamesPodAndLimit) {
  source_.add_oom_kill({.cgroup = CgroupId{4},
                        .path = "/system.slice/x.service",
                        .pod = nullptr,
                        .pid = 7,
                        .comm = "\xff",
                        .limit_of = CgroupId{4},
                        .limit_path = "/system.slice/x.service"},
                       {});
  EXPECT_TRUE(last().at("pod").is_null());
  EXPECT_EQ(last().at("limit_of"), "/system.slice/x.service");
  EXPECT_EQ(last().at("comm"), "\xef\xbf\xbd") << "bytes that are not UTF-8 are replaced";
}

}  // namespace
}  // namespace headroom::report
