// SPDX-License-Identifier: Apache-2.0
// headroomctl watch: which events are new, and an event as a line.
#include "ctl/watch/event_cursor.h"

#include "report/view/event_log.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

EventPage page(const report::EventLog& log, std::uint64_t after) {
  return *parse_event_page(log.json(after));
}

void add(report::EventLog& log, int count) {
  for (int i = 0; i < count; ++i)
    log.add("drift", {}, Json::object());
}

TEST(EventCursor, BeginsNowOrWithTheLastEvents) {
  report::EventLog log("a");
  add(log, 5);
  EventCursor now, three, all;
  now.begin(page(log, 99), 0);
  three.begin(page(log, 99), 3);
  all.begin(page(log, 99), 100);
  EXPECT_EQ(now.take(page(log, now.after())).events.size(), 0u);
  EXPECT_EQ(three.take(page(log, three.after())).events.size(), 3u);
  EXPECT_EQ(all.take(page(log, all.after())).events.size(), 5u);
  EXPECT_EQ(all.take(page(log, 0)).events.size(), 0u) << "no event twice";
}

TEST(EventCursor, AfterARestartEveryEventOfTheNewDaemonIsNew) {
  report::EventLog before("a"), after("b");
  add(before, 5);
  add(after, 2);
  EventCursor cursor;
  cursor.begin(page(before, 99), 0);
  const NewEvents first = cursor.take(page(after, cursor.after()));
  EXPECT_TRUE(first.ask_again);
  EXPECT_TRUE(first.events.empty());
  EXPECT_EQ(cursor.take(page(after, cursor.after())).events.size(), 2u);
}

TEST(EventCursor, CountsWhatTheDaemonNoLongerHas) {
  report::EventLog log("a");
  EventCursor cursor;
  add(log, 2);
  cursor.begin(page(log, 99), 0);
  add(log, report::EventLog::kSize + 7);
  NewEvents found = cursor.take(page(log, cursor.after()));
  EXPECT_EQ(found.missed, 7u);
  std::size_t events = found.events.size();
  while (found.ask_again) {
    found = cursor.take(page(log, cursor.after()));
    EXPECT_EQ(found.missed, 0u);
    events += found.events.size();
  }
  EXPECT_EQ(events, report::EventLog::kSize);
}

TEST(EventCursor, ContinuesFromItsText) {
  report::EventLog log("a");
  add(log, 3);
  EventCursor cursor;
  cursor.begin(page(log, 99), 1);
  EventCursor later = EventCursor::parse(cursor.text());
  EXPECT_TRUE(later.begun());
  EXPECT_EQ(later.take(page(log, later.after())).events.size(), 1u);
  for (const char* text : {"", "a", "a x", "\n"})
    EXPECT_FALSE(EventCursor::parse(text).begun()) << text;
}

TEST(EventCursor, AnInvalidAnswerIsAnError) {
  for (const char* text : {"", "null", "[]", "{}", R"({"events": 5})"})
    EXPECT_FALSE(parse_event_page(text)) << text;
  const auto odd = parse_event_page(R"({"events": [1, null, {"seq": "x"}], "last": -1})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->events.size(), 1u);
}

TEST(EventLine, SaysWhatHappened) {
  struct Case {
    const char* event;
    const char* line;
  };
  const Case cases[] = {
      {R"({"time": "2026-11-24T20:36:15.123456Z", "type": "eviction", "phase": "began", "whole_pod": true,
           "signal": "memory.available", "pod": {"namespace": "shop", "name": "web"}})",
       "2026-11-24T20:36:15Z  eviction   shop/web: evicting for memory.available"},
      {R"({"time": "t", "type": "eviction", "phase": "ended", "whole_pod": false, "outcome": "evicted",
           "signal": "memory.available", "memory_returned": 1048576, "pod": {"uid": "u-1"}})",
       "t  eviction   u-1: evicted a part of it for memory.available, 1Mi returned"},
      {R"({"time": "t", "type": "eviction", "phase": "ended", "whole_pod": true, "outcome": "failed",
           "signal": "taint", "memory_returned": null, "error": "No such process", "pod": {"namespace": "a", "name": "b"}})",
       "t  eviction   a/b: failed for taint: No such process"},
      {R"({"time": "t", "type": "condition", "condition": "DiskPressure", "status": true})",
       "t  condition  DiskPressure is reported"},
      {R"({"time": "t", "type": "condition", "condition": "DiskPressure", "status": false})",
       "t  condition  DiskPressure is no longer reported"},
      {R"({"time": "t", "type": "drift", "slice": "/kubepods.slice", "setting": "memory.max", "desired": "7"})",
       "t  drift      /kubepods.slice: memory.max was changed by another program, desired is 7"},
      {R"({"time": "t", "type": "oom_kill", "message": "the kernel killed \u001b[31m \u202e"})",
       "t  oom_kill   the kernel killed ?[31m ???"},
      {R"({"type": 5})", "             "},
  };
  for (const Case& each : cases)
    EXPECT_EQ(event_line(Json::parse(each.event)), each.line);
}

}  // namespace
}  // namespace headroom::ctl
