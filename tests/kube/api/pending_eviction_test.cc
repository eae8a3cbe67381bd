// SPDX-License-Identifier: Apache-2.0
// One posting, walked through the answers of an API server.
#include "kube/api/pending_eviction.h"

#include "kube/api/api_response.h"
#include "kube/api/eviction_queue.h"
#include "kube/api/pod_requests.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using AfterEviction = config::ApiConfig::AfterEviction;
using Json = nlohmann::json;

constexpr Instant kStart{1000s};

EvictionRecord web() {
  return {.uid = "u-1",
          .name = "web",
          .pod_namespace = "shop",
          .signal = "memory.available",
          .message = "The node was low on resource: memory. ",
          .time = "2026-11-20T22:50:00Z",
          .stamp = "000660bd1060b840"};
}

PendingEvictionOptions options(AfterEviction after, bool events = true) {
  return {.after = after, .events = events, .node_name = "n1"};
}

HttpResponse answer(long status, const Json& body = Json::object(), HttpHeaders headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = body.dump()};
}
HttpResponse api_status(long status, const char* reason, const char* kind = "pods") {
  return answer(status, {{"kind", "Status"},
                         {"reason", reason},
                         {"message", "because"},
                         {"details", {{"kind", kind}, {"name", "web"}}}});
}
HttpResponse pod(const char* uid) {
  return answer(200, {{"kind", "Pod"}, {"metadata", {{"uid", uid}}}});
}

// Takes steps while any is due, each answered by the next of the answers; says what was asked.
class Walk {
 public:
  PendingEviction pending;
  Instant now = kStart;
  HttpRequest last;
  StepResult answered;

  explicit Walk(PendingEvictionOptions options, PendingEviction first = pending_from(web()))
      : pending(std::move(first)), terms_(std::move(options)) {}

  // "PATCH /api/v1/…/status"
  std::string ask(const Result<HttpResponse>& response) {
    const auto step = next_step(pending, terms_, now);
    if (!step) return "";
    last = request_for(pending, *step, terms_);
    answered = record_response(pending, *step, response, now, 0.0);
    return last.method + " " + last.path;
  }
  void wait(Duration more) { now += more; }
  bool finished() const { return kube::finished(pending, terms_); }
  bool idle() const { return !next_step(pending, terms_, now); }

 private:
  PendingEvictionOptions terms_;
};

const std::string kPod = "/api/v1/namespaces/shop/pods/web";
const std::string kStatus = "PATCH " + kPod + "/status?fieldManager=headroom";
const std::string kEvents = "/api/v1/namespaces/shop/events";

TEST(PendingEviction, EachWayTakesItsSteps) {
  struct Case {
    AfterEviction after;
    bool events;
    std::vector<std::string> asked;
  };
  const std::string event = "POST " + kEvents + "?fieldManager=headroom";
  const Case cases[] = {
      {AfterEviction::kNone, true, {}},
      {AfterEviction::kStatus, false, {kStatus}},
      {AfterEviction::kStatus, true, {kStatus, event}},
      {AfterEviction::kEvict, true, {kStatus, "POST " + kPod + "/eviction", event}},
      {AfterEviction::kDelete, true, {kStatus, "DELETE " + kPod, event}},
  };
  for (const Case& row : cases) {
    Walk walk(options(row.after, row.events));
    std::vector<std::string> asked;
    for (std::string one = walk.ask(answer(200)); !one.empty(); one = walk.ask(answer(200)))
      asked.push_back(one);
    EXPECT_EQ(asked, row.asked);
    EXPECT_TRUE(walk.finished());
  }
}

TEST(PendingEviction, TheStatusIsWhatTheKubeletWrites) {
  const HttpRequest request = pod_status_patch(pending_from(web()));
  EXPECT_EQ(request.headers.front().second, "application/strategic-merge-patch+json");
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({
    "metadata": {"uid": "u-1"},
    "status": {"phase": "Failed", "reason": "Evicted",
      "message": "The node was low on resource: memory. ",
      "conditions": [{"type": "DisruptionTarget", "status": "True",
        "lastTransitionTime": "2026-11-20T22:50:00Z", "reason": "TerminationByKubelet",
        "message": "The node was low on resource: memory. "}]}})"));
}

TEST(PendingEviction, ALimitOfItsOwnIsNoDisruptionAndATaintIsUpstreams) {
  EvictionRecord limit = web(), taint = web();
  limit.cause = EvictionRecord::Cause::kLimit;
  taint.cause = EvictionRecord::Cause::kTaint;
  EXPECT_FALSE(
      Json::parse(pod_status_patch(pending_from(limit)).body)["status"].contains("conditions"));
  EXPECT_EQ(
      Json::parse(pod_status_patch(pending_from(taint)).body)["status"]["conditions"][0]["reason"],
      "DeletionByTaintManager");
}

TEST(PendingEviction, EvictionAndDeletionAreOfThatPodAlone) {
  const Json eviction = Json::parse(pod_eviction(pending_from(web())).body);
  EXPECT_EQ(eviction["apiVersion"], "policy/v1");
  EXPECT_EQ(eviction["metadata"]["name"], "web");
  EXPECT_EQ(eviction["deleteOptions"]["preconditions"]["uid"], "u-1");
  const Json deletion = Json::parse(pod_deletion(pending_from(web())).body);
  EXPECT_EQ(deletion["preconditions"]["uid"], "u-1");
  EXPECT_EQ(deletion["gracePeriodSeconds"], 1) << "0 takes it from under the kubelet";
}

TEST(PendingEviction, TheEventIsTheKubeletsWithANameOfItsOwnMaking) {
  const HttpRequest request = event_creation(pending_from(web()), options(AfterEviction::kStatus));
  const Json event = Json::parse(request.body);
  EXPECT_EQ(event["metadata"]["name"], "web.000660bd1060b840");
  EXPECT_EQ(event["reason"], "Evicted");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["uid"], "u-1");
  EXPECT_EQ(event["source"]["host"], "n1");
  EXPECT_EQ(event["metadata"]["annotations"]["starved_resource"], "memory");
}

TEST(PendingEviction, ANameThatIsTooLongIsCutWhereANameMayEnd) {
  EvictionRecord long_named = web();
  long_named.name = std::string(235, 'a') + "-" + std::string(17, 'b');
  const std::string name = event_name(pending_from(long_named));
  EXPECT_EQ(name, std::string(235, 'a') + ".000660bd1060b840");
  EXPECT_LE(name.size(), 253U);
}

TEST(PendingEviction, NamesOfOthersDoNotBecomePaths) {
  EvictionRecord evil = web();
  evil.name = "../../nodes/n1?x=";
  EXPECT_EQ(pod_path(evil), "/api/v1/namespaces/shop/pods/..%2F..%2Fnodes%2Fn1%3Fx%3D");
}

TEST(PendingEviction, APodThatIsGoneIsDoneButForItsEvent) {
  Walk walk(options(AfterEviction::kDelete));
  walk.ask(api_status(404, "NotFound"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kGone);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kEvents + "?fieldManager=headroom");
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, ANotFoundOfAnotherServerIsNotTakenForOne) {
  Walk walk(options(AfterEviction::kDelete));
  walk.ask(answer(404, "<html>no such page</html>"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kRefused);
  EXPECT_FALSE(walk.finished());
}

TEST(PendingEviction, AnotherPodByThatNameIsLeftAlone) {
  for (const long status : {409L, 422L}) {
    Walk walk(options(AfterEviction::kDelete, false));
    EXPECT_EQ(walk.ask(api_status(status, "Conflict")), kStatus);
    walk.wait(10s);
    EXPECT_EQ(walk.ask(pod("u-2")), "GET " + kPod);
    EXPECT_EQ(walk.answered.response_class, ResponseClass::kGone);
    EXPECT_TRUE(walk.finished());
  }
}

TEST(PendingEviction, AConflictAboutTheSamePodIsTriedAgain) {
  Walk walk(options(AfterEviction::kStatus, false));
  walk.ask(api_status(409, "Conflict"));
  EXPECT_TRUE(walk.idle()) << "not at once";
  walk.wait(10s);
  EXPECT_EQ(walk.ask(pod("u-1")), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, WhatIsInDoubtStaysSoUntilItIsAnswered) {
  Walk walk(options(AfterEviction::kStatus, false));
  walk.ask(api_status(409, "Conflict"));
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(500)), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(200, "half a p")), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(api_status(404, "NotFound")), "GET " + kPod);
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, TheActWaitsForTheStatusWithinReason) {
  Walk walk(options(AfterEviction::kDelete, false));
  for (unsigned i = 0; i < kMaxStatusFailures; ++i) {
    EXPECT_EQ(walk.ask(answer(500)), kStatus) << i;
    walk.wait(i + 1 < kMaxStatusFailures ? 1min : 0s);
  }
  EXPECT_EQ(walk.ask(answer(200)), "DELETE " + kPod) << "the pod is to be replaced";
  EXPECT_FALSE(walk.finished());
  walk.wait(1min);
  EXPECT_EQ(walk.ask(api_status(404, "NotFound")), kStatus);
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, ARefusedStatusHoldsNothingUp) {
  Walk walk(options(AfterEviction::kDelete));
  walk.ask(api_status(403, "Forbidden"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kRefused);
  EXPECT_EQ(walk.ask(answer(200)), "DELETE " + kPod);
  EXPECT_EQ(walk.ask(answer(201)).substr(0, 5), "POST ");
  EXPECT_FALSE(walk.finished()) << "it may yet be allowed";
  walk.wait(kRefusedRetryWait - 1ns);
  EXPECT_TRUE(walk.idle());
  walk.wait(1ns);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
}

TEST(PendingEviction, ABudgetsNoIsAboutOnePodAndWaitsAsLongAsItSays) {
  Walk walk(options(AfterEviction::kEvict, false));
  walk.ask(answer(200));
  walk.ask(answer(429, Json::object(), {{"retry-after", "30"}}));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kRetry);
  walk.wait(30s - 1ns);
  EXPECT_TRUE(walk.idle());
  walk.wait(1ns);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kPod + "/eviction");
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, TroubleOfTheServerIsNotThePostings) {
  for (const long status : {401L, 429L, 503L, 504L}) {
    Walk walk(options(AfterEviction::kDelete));
    walk.ask(answer(status, Json::object(), {{"retry-after", "7"}}));
    EXPECT_EQ(walk.answered.response_class, ResponseClass::kServerError) << status;
    EXPECT_EQ(walk.answered.retry_after, Duration(7s));
    EXPECT_EQ(walk.pending, pending_from(web())) << status;
  }
  Walk walk(options(AfterEviction::kDelete));
  walk.ask(failure("connection reset"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kServerError);
  EXPECT_EQ(walk.answered.why, "connection reset");
}

TEST(PendingEviction, AServerThatKnowsNoPolicyV1IsAskedInTheOldWay) {
  Walk walk(options(AfterEviction::kEvict, false));
  walk.ask(answer(200));
  walk.ask(api_status(400, "BadRequest"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kRetry);
  walk.wait(1s);
  walk.ask(answer(201));
  EXPECT_EQ(Json::parse(walk.last.body)["apiVersion"], "policy/v1beta1");
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, AnEvictionThatIsRefusedInBothWaysIsAskedForRarely) {
  Walk walk(options(AfterEviction::kEvict, false));
  walk.ask(answer(200));
  walk.ask(api_status(400, "BadRequest"));
  walk.wait(1s);
  walk.ask(api_status(400, "BadRequest"));
  EXPECT_EQ(walk.answered.response_class, ResponseClass::kRefused);
  walk.wait(kRefusedRetryWait);
  walk.ask(answer(201));
  EXPECT_EQ(Json::parse(walk.last.body)["apiVersion"], "policy/v1");
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, AnEventThatIsThereAlreadyWasMadeByAFormerLife) {
  Walk walk(options(AfterEviction::kStatus));
  walk.ask(answer(200));
  walk.ask(api_status(409, "AlreadyExists", "events"));
  EXPECT_TRUE(walk.finished());
}

TEST(PendingEviction, EvictedAgainBeforeAllWasReportedItIsOneEventThatCounts) {
  Walk walk(options(AfterEviction::kStatus));
  walk.ask(answer(200));
  walk.ask(answer(500));  // the event
  EvictionRecord later = web();
  later.time = "2026-11-20T22:51:00Z";
  later.stamp = "000660bd13f43f40";
  merge_repeated_eviction(walk.pending, later);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kEvents + "?fieldManager=headroom");
  Json event = Json::parse(walk.last.body);
  EXPECT_EQ(event["count"], 2);
  EXPECT_EQ(event["firstTimestamp"], "2026-11-20T22:50:00Z");
  EXPECT_EQ(event["lastTimestamp"], "2026-11-20T22:51:00Z");
  merge_repeated_eviction(walk.pending, later);
  walk.ask(answer(200));
  EXPECT_EQ(walk.ask(answer(200)),
            "PATCH " + kEvents + "/web.000660bd1060b840?fieldManager=headroom");
  EXPECT_EQ(Json::parse(walk.last.body)["count"], 3) << "said, not added: twice is no more";
}

TEST(PendingEviction, AnEventThatTimeTookIsMadeAnew) {
  Walk walk(options(AfterEviction::kStatus));
  walk.ask(answer(200));
  walk.ask(answer(201));
  merge_repeated_eviction(walk.pending, web());
  walk.ask(answer(200));
  EXPECT_EQ(walk.ask(api_status(404, "NotFound", "events")).substr(0, 6), "PATCH ");
  walk.wait(1min);
  EXPECT_EQ(walk.ask(answer(201)).substr(0, 5), "POST ");
  EXPECT_TRUE(walk.finished());
}

TEST(Backoff, GrowsToItsMostAndHeedsWhatWasAsked) {
  EXPECT_EQ(wait_after(1, 0), kFirstWait / 2);
  EXPECT_LT(wait_after(1, 0.999), kFirstWait);
  EXPECT_EQ(wait_after(3, 0), 2 * kFirstWait);
  EXPECT_EQ(wait_after(1000, 0), kMaxWait / 2);
  EXPECT_EQ(wait_after(1, 0, 60s), 60s);
  EXPECT_LE(wait_after(1, 0.999, 60s), 75s);
  EXPECT_EQ(wait_after(1, 0, 24h), kMaxRetryAfter) << "a server gone mad does not silence us";
}

TEST(EvictionQueue, AnythingThatWasWrittenIsReadAgain) {
  EvictionQueue queue;
  EXPECT_EQ(*queue_of(as_text(queue)), queue);
  queue.cursor = Cursor{42, 4711};
  queue.node = {.conditions = true, .taints = false};
  take(queue, web());
  EvictionRecord other = web();
  other.uid = "u-2";
  other.cause = EvictionRecord::Cause::kTaint;
  take(queue, other);
  take(queue, web());
  ASSERT_EQ(queue.pending_evictions.size(), 2U);
  EXPECT_EQ(queue.pending_evictions[0].count, 2U);
  queue.pending_evictions[1].at(Step::kStatus).done = true;
  queue.pending_evictions[1].event_made = true;
  EXPECT_EQ(*queue_of(as_text(queue)), queue);
}

TEST(EvictionQueue, WhatIsNoQueueIsAnError) {
  for (const char* text :
       {"", "{}", "[]", "7", R"({"version":2})", R"({"version":3})", R"({"version":1,"cursor":7})"})
    EXPECT_FALSE(queue_of(text)) << text;
}

TEST(EvictionQueue, AnyDamageIsSeen) {
  EvictionQueue queue{.cursor = Cursor{42, 4711}, .pending_evictions = {}, .node = {}};
  take(queue, web());
  const std::string text = as_text(queue);
  for (std::size_t place = 0; place < text.size(); ++place) {
    std::string damaged = text;
    damaged[place] ^= 1;
    const auto read = queue_of(damaged);
    EXPECT_TRUE(!read || *read == queue) << place << ": " << damaged;
  }
}

TEST(EvictionQueue, ThatOfRelease01IsRead) {
  const auto queue = queue_of(R"({"version":1,"cursor":{"inode":42,"offset":4711},"postings":[
    {"uid":"u-1","namespace":"shop","name":"web-0","why":"taint","signal":"taint","message":"m",
     "time":"2026-03-01T10:00:00Z","stamp":"0006","firstTime":"2026-03-01T09:00:00Z",
     "firstStamp":"0005","count":2,"eventMade":true,"done":["status"]}],
    "node":{"conditions":true,"taints":false}})");
  ASSERT_TRUE(queue) << queue.error().what;
  EXPECT_EQ(queue->cursor, (Cursor{42, 4711}));
  EXPECT_EQ(queue->node, (PublishedOnNode{.conditions = true, .taints = false}));
  ASSERT_EQ(queue->pending_evictions.size(), 1U);
  const PendingEviction& pending = queue->pending_evictions[0];
  EXPECT_EQ(pending.evicted.name, "web-0");
  EXPECT_EQ(pending.evicted.cause, EvictionRecord::Cause::kTaint);
  EXPECT_EQ(pending.first_stamp, "0005");
  EXPECT_EQ(pending.count, 2U);
  EXPECT_TRUE(pending.event_made && pending.at(Step::kStatus).done);
  EXPECT_FALSE(pending.at(Step::kAct).done || pending.at(Step::kEvent).done);
}

}  // namespace
}  // namespace headroom::kube
