// SPDX-License-Identifier: Apache-2.0
// The page and what it asks for.
#include "report/page/page_router.h"

#include "config/temp_dir.h"
#include "report/sample.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using namespace headroom::test;
using Json = nlohmann::json;

std::string text_of(ResponseBody& body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

std::string header_of(const HttpResponse& answer, const std::string& name) {
  const auto found = std::find_if(answer.headers.begin(), answer.headers.end(),
                                  [&](const HttpHeader& each) { return name == each.name; });
  return found == answer.headers.end() ? "" : found->value;
}

struct PageRouterTest : ::testing::Test {
  void publish(const std::string& audit_log = "") {
    views->node.publish([&](NodeView& next, const NodeView*) {
      next = sample_node();
      next.audit_log = audit_log;
    });
    views->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  }
  HttpResponse get(std::string_view path, std::string argument_value = "",
                   std::string_view if_none_match = "") {
    auto answer = router.answer(
        {.path = path, .if_none_match = if_none_match, .argument = [&](const char* name) {
           const std::string_view known = path == "/api/status"   ? "pods"
                                          : path == "/api/events" ? "after"
                                                                  : "last";
           const bool asked = name == known;
           return asked ? std::string_view(argument_value) : std::string_view();
         }});
    EXPECT_TRUE(answer) << path;
    return std::move(*answer);
  }
  std::shared_ptr<PublishedViews> views = std::make_shared<PublishedViews>();
  PageRouter router{views, nullptr};
};

TEST_F(PageRouterTest, ThePageIsSmallAndGuarded) {
  const HttpResponse page = get("/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header_of(page, "Content-Security-Policy"), page_policy());
  EXPECT_EQ(header_of(page, "Content-Security-Policy").find("unsafe"), std::string::npos);
  EXPECT_EQ(header_of(page, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header_of(page, "Cache-Control"), "no-cache");
  const std::string text = text_of(*page.body);
  EXPECT_LT(text.size(), 100u << 10);
  // Nothing from elsewhere, and no markup out of text.
  for (const char* never :
       {"https://", "innerHTML", "insertAdjacentHTML", "document.write", "@import"})
    EXPECT_EQ(text.find(never), std::string::npos) << never;
}

TEST_F(PageRouterTest, TheStatusIsTheDocument) {
  EXPECT_EQ(text_of(*get("/api/status").body), "{}");  // nothing is shown yet
  publish();
  const HttpResponse answer = get("/api/status");
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(header_of(answer, "Cache-Control"), "no-store");
  EXPECT_EQ(Json::parse(text_of(*answer.body)).at("pods").size(), 3u);
}

TEST_F(PageRouterTest, TheHistoryHasSeriesOfWhatWasKnown) {
  EXPECT_EQ(text_of(*get("/api/history").body), R"({"at_ns":[],"signals":{},"waited_ns":{}})");
  hr_stalls stalls{};
  for (const int second : {1, 2}) {
    Snapshot snapshot;
    snapshot.at = Instant(std::chrono::seconds(second));
    stalls.causes[HR_STALL_GLOBAL].ns += 5;
    snapshot.waits.node_stalls = &stalls;
    if (second == 2)
      of(snapshot.observations, Signal::kPidAvailable) =
          Observation{.available = 7, .capacity = 9, .at = snapshot.at};
    views->history.add(snapshot);
  }
  const HttpResponse answer = get("/api/history");
  EXPECT_EQ(answer.content_type, "application/json");
  const Json json = Json::parse(text_of(*answer.body));
  EXPECT_EQ(json.at("at_ns"), (Json{1'000'000'000, 2'000'000'000}));
  EXPECT_EQ(json.at("signals"), (Json{{"pid.available", {nullptr, 7}}}));
  EXPECT_EQ(json.at("waited_ns").at("global"), (Json{5, 10}));
  EXPECT_FALSE(json.at("waited_ns").contains("throttled"));
}

TEST_F(PageRouterTest, EventsAreReadByTheirNumber) {
  views->events.add("drift", {}, {{"slice", "/a"}});
  views->events.add("drift", {}, {{"slice", "/b"}});
  EXPECT_EQ(Json::parse(text_of(*get("/api/events").body)).at("events").size(), 2u);
  EXPECT_EQ(Json::parse(text_of(*get("/api/events", "1").body)).at("events").size(), 1u);
  EXPECT_EQ(Json::parse(text_of(*get("/api/events", "0").body)).at("events").size(), 2u);
  EXPECT_EQ(get("/api/events", "-1").status, 400u);
  EXPECT_EQ(text_of(*get("/api/events", "x").body), "after: want the number of an event\n");
}

TEST_F(PageRouterTest, TheStatusIsLimitedByItsArgument) {
  publish();
  const auto all = text_of(*get("/api/status").body).size();
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) {
    next = sample_cgroups();
    next.pods.resize(1, next.pods.front());
    next.pods.resize(40, next.pods.front());
  });
  EXPECT_EQ(Json::parse(text_of(*get("/api/status", "25").body)).at("pods").size(), 25u);
  EXPECT_GT(text_of(*get("/api/status").body).size(), all);
  EXPECT_EQ(get("/api/status", "0").status, 400u);
  EXPECT_EQ(text_of(*get("/api/status", "all").body), "pods: want a number from 1 to 10000\n");
}

TEST_F(PageRouterTest, TopWaitersAreKnownAfterTwoTables) {
  publish();
  EXPECT_EQ(Json::parse(text_of(*get("/api/status").body)).at("top_waiters"), Json::object());
  views->cgroups.publish([](CgroupTable& next, const CgroupTable*) {
    next = sample_cgroups();
    next.at += std::chrono::seconds(2);
    next.throttles.values.at(0).ns += 5'000'000;
  });
  const Json most = Json::parse(text_of(*get("/api/status").body)).at("top_waiters");
  EXPECT_EQ(most, (Json{{"throttled",
                         {{"namespace", "default"}, {"name", "web"}, {"ns_per_s", 2'500'000.0}}}}));
  EXPECT_EQ(Json::parse(text_of(*get("/api/status").body)).at("top_waiters"), most)
      << "asked twice between two looks";
}

TEST_F(PageRouterTest, EvictionsAreAListWithOrWithoutALog) {
  EXPECT_EQ(Json::parse(text_of(*get("/api/evictions").body)), Json::array());
  TempDir dir;
  const std::string log = (dir.path() / "evictions.jsonl").string();
  publish(log);
  EXPECT_EQ(Json::parse(text_of(*get("/api/evictions").body)), Json::array());
  std::ofstream(log) << "{\"n\":1}\n{\"n\":2}\n";
  EXPECT_EQ(Json::parse(text_of(*get("/api/evictions", "1").body)).at(0).at("n"), 2);
}

TEST_F(PageRouterTest, AnUnchangedLogIsNotSentAgain) {
  TempDir dir;
  const std::string log = (dir.path() / "evictions.jsonl").string();
  std::ofstream(log) << "{\"n\":1}\n";
  publish(log);
  const std::string tag = header_of(get("/api/evictions"), "ETag");
  ASSERT_NE(tag, "");
  EXPECT_EQ(get("/api/evictions", "", tag).status, 304u);
  std::ofstream(log, std::ios::app) << "{\"n\":2}\n";
  EXPECT_EQ(get("/api/evictions", "", tag).status, 200u);
}

TEST_F(PageRouterTest, ABadNumberIsRefusedBeforeAnythingIsRead) {
  struct Case {
    const char* last;
    unsigned status;
  };
  for (const Case& each : {Case{"1", 200},
                           {"100", 200},
                           {"0", 400},
                           {"101", 400},
                           {"-1", 400},
                           {"many", 400},
                           {"1e2", 400},
                           {"5 ", 400},
                           {"99999999999999999999", 400}}) {
    const HttpResponse answer = get("/api/evictions", each.last);
    EXPECT_EQ(answer.status, each.status) << each.last;
    if (each.status == 400) {
      EXPECT_EQ(text_of(*answer.body), "last: want a number from 1 to 100\n");
    }
  }
}

TEST_F(PageRouterTest, TheCpuMapIsServed) {
  HttpResponse without_cpus = get("/api/cpus");
  EXPECT_EQ(text_of(*without_cpus.body), "null");
  PageRouter router{views, nullptr, {.cpus = [] { return std::string(R"({"mode":"observe"})"); }}};
  auto answer = router.answer({.path = "/api/cpus"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_EQ(text_of(*answer->body), R"({"mode":"observe"})");
}

TEST_F(PageRouterTest, TheMemoryMapIsServed) {
  HttpResponse without_memory = get("/api/memory");
  EXPECT_EQ(text_of(*without_memory.body), "null");
  PageRouter router{views, nullptr, {.memory = [] { return std::string(R"({"mode":"off"})"); }}};
  auto answer = router.answer({.path = "/api/memory"});
  ASSERT_TRUE(answer);
  EXPECT_EQ(text_of(*answer->body), R"({"mode":"off"})");
}

TEST_F(PageRouterTest, OtherPathsAreNotServed) {
  EXPECT_FALSE(router.answer({.path = "/api/"}));
  EXPECT_FALSE(router.answer({.path = "/metrics"}));
}

}  // namespace
}  // namespace headroom::report
