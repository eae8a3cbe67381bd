// SPDX-License-Identifier: Apache-2.0
// Which lines of the audit log are the API server's business, and what is read of them.
#include "kube/api/pending_eviction.h"
#include "report/eviction/audit_line.h"
#include "report/sample.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;

Json line() {
  return {{"time", "2026-11-20T22:50:00.123456Z"},
          {"outcome", "evicted"},
          {"pod", {{"namespace", "shop"}, {"name", "web"}, {"uid", "u-1"}}},
          {"signal", "memory.available"},
          {"kind", "hard"},
          {"message", "The node was low on resource: memory. "}};
}

TEST(EvictedOf, ALineIsReadForWhatTheApiServerIsToKnow) {
  const auto evicted = parse_eviction(line().dump());
  ASSERT_TRUE(evicted);
  EXPECT_EQ(*evicted, (EvictionRecord{.uid = "u-1",
                                      .name = "web",
                                      .pod_namespace = "shop",
                                      .cause = EvictionRecord::Cause::kThreshold,
                                      .signal = "memory.available",
                                      .message = "The node was low on resource: memory. ",
                                      .time = "2026-11-20T22:50:00Z",
                                      .stamp = "000660bd1060b840"}));
}

struct Case {
  const char* name;
  Json change;  // merged into the line
  bool reported;
};

TEST(EvictedOf, OnlyAPodThatDiedWholeIsReported) {
  const Case cases[] = {
      {"as it is", Json::object(), true},
      {"its time was up and processes were left", {{"outcome", "timed_out"}}, true},
      {"nothing was killed in observe mode", {{"outcome", "would_evict"}}, false},
      {"it ended by itself", {{"outcome", "already_gone"}}, false},
      {"the act failed", {{"outcome", "failed"}}, false},
      {"it is under way", {{"outcome", "open"}}, false},
      {"the whole pod by name", {{"unit", "pod"}}, true},
      {"a container of it", {{"unit", "container"}}, false},
      {"a process of it", {{"unit", "process"}}, false},
      {"a pod known by its cgroup alone", {{"pod", {{"name", ""}}}}, false},
      {"no uid", {{"pod", {{"uid", ""}}}}, false},
      {"a pod that is none", {{"pod", "web"}}, false},
      {"a time that is none", {{"time", "yesterday"}}, false},
      {"a name that is no text", {{"pod", {{"name", 7}}}}, false},
  };
  for (const Case& row : cases) {
    Json changed = line();
    changed.merge_patch(row.change);
    EXPECT_EQ(parse_eviction(changed.dump()).has_value(), row.reported) << row.name;
  }
  for (const char* text : {"", "{", "[]", "null", "{\"outcome\":\"evicted\"}"})
    EXPECT_FALSE(parse_eviction(text)) << text;
}

TEST(EvictedOf, WhyItLeftIsKept) {
  Json limit = line(), taint = line();
  limit["kind"] = "limit";
  taint.erase("kind");
  taint["taint"] = "dedicated=gpu:NoExecute";
  EXPECT_EQ(parse_eviction(limit.dump())->cause, EvictionRecord::Cause::kLimit);
  EXPECT_EQ(parse_eviction(taint.dump())->cause, EvictionRecord::Cause::kTaint);
}

TEST(EvictedOf, WhatTheDaemonWritesIsUnderstood) {
  const auto time = WallTime(std::chrono::seconds(1'700'000'000));
  const auto evicted = parse_eviction(report::audit_line(test::sample_eviction(), time, nullptr));
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->name, "hog");
  EXPECT_EQ(evicted->time, "2023-11-14T22:13:20Z");
  EXPECT_EQ(evicted->signal, "memory.available");
  EXPECT_EQ(evicted->message, "The node was low on resource: memory. ");
}

}  // namespace
}  // namespace headroom::kube
