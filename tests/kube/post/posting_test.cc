// SPDX-License-Identifier: Apache-2.0
// One posting, walked through the answers of an API server.
#include "kube/post/posting.h"

#include "kube/post/backoff.h"
#include "kube/post/pod_requests.h"
#include "kube/post/queue.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using After = config::ApiConfig::After;
using Json = nlohmann::json;

constexpr Instant kStart{1000s};

Evicted web() {
  return {.uid = "u-1",
          .name = "web",
          .pod_namespace = "shop",
          .signal = "memory.available",
          .message = "The node was low on resource: memory. ",
          .time = "2026-11-20T22:50:00Z",
          .stamp = "000660bd1060b840"};
}

PostingTerms terms(After after, bool events = true) {
  return {.after = after, .events = events, .node_name = "n1"};
}

HttpResponse answer(long status, const Json& body = Json::object(), HttpHeaders headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = body.dump()};
}
HttpResponse told(long status, const char* reason, const char* kind = "pods") {
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
  Posting posting;
  Instant now = kStart;
  HttpRequest last;
  Answer answered;

  explicit Walk(PostingTerms terms, Posting first = posting_of(web()))
      : posting(std::move(first)), terms_(std::move(terms)) {}

  // "PATCH /api/v1/…/status"
  std::string ask(const Result<HttpResponse>& response) {
    const auto step = next_step(posting, terms_, now);
    if (!step) return "";
    last = request_for(posting, *step, terms_);
    answered = settle(posting, *step, response, now, 0.0);
    return last.method + " " + last.path;
  }
  void wait(Duration more) { now += more; }
  bool finished() const { return kube::finished(posting, terms_); }
  bool idle() const { return !next_step(posting, terms_, now); }

 private:
  PostingTerms terms_;
};

const std::string kPod = "/api/v1/namespaces/shop/pods/web";
const std::string kStatus = "PATCH " + kPod + "/status?fieldManager=headroom";
const std::string kEvents = "/api/v1/namespaces/shop/events";

TEST(Posting, EachWayTakesItsSteps) {
  struct Case {
    After after;
    bool events;
    std::vector<std::string> asked;
  };
  const std::string event = "POST " + kEvents + "?fieldManager=headroom";
  const Case cases[] = {
      {After::kNone, true, {}},
      {After::kStatus, false, {kStatus}},
      {After::kStatus, true, {kStatus, event}},
      {After::kEvict, true, {kStatus, "POST " + kPod + "/eviction", event}},
      {After::kDelete, true, {kStatus, "DELETE " + kPod, event}},
  };
  for (const Case& row : cases) {
    Walk walk(terms(row.after, row.events));
    std::vector<std::string> asked;
    for (std::string one = walk.ask(answer(200)); !one.empty(); one = walk.ask(answer(200)))
      asked.push_back(one);
    EXPECT_EQ(asked, row.asked);
    EXPECT_TRUE(walk.finished());
  }
}

TEST(Posting, TheStatusIsWhatTheKubeletWrites) {
  const HttpRequest request = pod_status_patch(posting_of(web()));
  EXPECT_EQ(request.headers.front().second, "application/strategic-merge-patch+json");
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({
    "metadata": {"uid": "u-1"},
    "status": {"phase": "Failed", "reason": "Evicted",
      "message": "The node was low on resource: memory. ",
      "conditions": [{"type": "DisruptionTarget", "status": "True",
        "lastTransitionTime": "2026-11-20T22:50:00Z", "reason": "TerminationByKubelet",
        "message": "The node was low on resource: memory. "}]}})"));
}

TEST(Posting, ALimitOfItsOwnIsNoDisruptionAndATaintIsUpstreams) {
  Evicted limit = web(), taint = web();
  limit.why = Evicted::Why::kLimit;
  taint.why = Evicted::Why::kTaint;
  EXPECT_FALSE(
      Json::parse(pod_status_patch(posting_of(limit)).body)["status"].contains("conditions"));
  EXPECT_EQ(
      Json::parse(pod_status_patch(posting_of(taint)).body)["status"]["conditions"][0]["reason"],
      "DeletionByTaintManager");
}

TEST(Posting, EvictionAndDeletionAreOfThatPodAlone) {
  const Json eviction = Json::parse(pod_eviction(posting_of(web())).body);
  EXPECT_EQ(eviction["apiVersion"], "policy/v1");
  EXPECT_EQ(eviction["metadata"]["name"], "web");
  EXPECT_EQ(eviction["deleteOptions"]["preconditions"]["uid"], "u-1");
  const Json deletion = Json::parse(pod_deletion(posting_of(web())).body);
  EXPECT_EQ(deletion["preconditions"]["uid"], "u-1");
  EXPECT_EQ(deletion["gracePeriodSeconds"], 1) << "0 takes it from under the kubelet";
}

TEST(Posting, TheEventIsTheKubeletsWithANameOfItsOwnMaking) {
  const HttpRequest request = event_creation(posting_of(web()), terms(After::kStatus));
  const Json event = Json::parse(request.body);
  EXPECT_EQ(event["metadata"]["name"], "web.000660bd1060b840");
  EXPECT_EQ(event["reason"], "Evicted");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["involvedObject"]["uid"], "u-1");
  EXPECT_EQ(event["source"]["host"], "n1");
  EXPECT_EQ(event["metadata"]["annotations"]["starved_resource"], "memory");
}

TEST(Posting, ANameThatIsTooLongIsCutWhereANameMayEnd) {
  Evicted long_named = web();
  long_named.name = std::string(235, 'a') + "-" + std::string(17, 'b');
  const std::string name = event_name(posting_of(long_named));
  EXPECT_EQ(name, std::string(235, 'a') + ".000660bd1060b840");
  EXPECT_LE(name.size(), 253U);
}

TEST(Posting, NamesOfOthersDoNotBecomePaths) {
  Evicted evil = web();
  evil.name = "../../nodes/n1?x=";
  EXPECT_EQ(pod_path(evil), "/api/v1/namespaces/shop/pods/..%2F..%2Fnodes%2Fn1%3Fx%3D");
}

TEST(Posting, APodThatIsGoneIsDoneButForItsEvent) {
  Walk walk(terms(After::kDelete));
  walk.ask(told(404, "NotFound"));
  EXPECT_EQ(walk.answered.heard, Heard::kGone);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kEvents + "?fieldManager=headroom");
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, ANotFoundOfSomebodyElseIsNotTakenForOne) {
  Walk walk(terms(After::kDelete));
  walk.ask(answer(404, "<html>no such page</html>"));
  EXPECT_EQ(walk.answered.heard, Heard::kRefused);
  EXPECT_FALSE(walk.finished());
}

TEST(Posting, AnotherPodByThatNameIsLeftAlone) {
  for (const long status : {409L, 422L}) {
    Walk walk(terms(After::kDelete, false));
    EXPECT_EQ(walk.ask(told(status, "Conflict")), kStatus);
    walk.wait(10s);
    EXPECT_EQ(walk.ask(pod("u-2")), "GET " + kPod);
    EXPECT_EQ(walk.answered.heard, Heard::kGone);
    EXPECT_TRUE(walk.finished());
  }
}

TEST(Posting, AConflictAboutTheSamePodIsTriedAgain) {
  Walk walk(terms(After::kStatus, false));
  walk.ask(told(409, "Conflict"));
  EXPECT_TRUE(walk.idle()) << "not at once";
  walk.wait(10s);
  EXPECT_EQ(walk.ask(pod("u-1")), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, WhatIsInDoubtStaysSoUntilItIsAnswered) {
  Walk walk(terms(After::kStatus, false));
  walk.ask(told(409, "Conflict"));
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(500)), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(answer(200, "half a p")), "GET " + kPod);
  walk.wait(10s);
  EXPECT_EQ(walk.ask(told(404, "NotFound")), "GET " + kPod);
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, TheActWaitsForTheStatusWithinReason) {
  Walk walk(terms(After::kDelete, false));
  for (unsigned i = 0; i < kPatience; ++i) {
    EXPECT_EQ(walk.ask(answer(500)), kStatus) << i;
    walk.wait(i + 1 < kPatience ? 1min : 0s);
  }
  EXPECT_EQ(walk.ask(answer(200)), "DELETE " + kPod) << "the pod is to be replaced";
  EXPECT_FALSE(walk.finished());
  walk.wait(1min);
  EXPECT_EQ(walk.ask(told(404, "NotFound")), kStatus);
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, ARefusedStatusHoldsNothingUp) {
  Walk walk(terms(After::kDelete));
  walk.ask(told(403, "Forbidden"));
  EXPECT_EQ(walk.answered.heard, Heard::kRefused);
  EXPECT_EQ(walk.ask(answer(200)), "DELETE " + kPod);
  EXPECT_EQ(walk.ask(answer(201)).substr(0, 5), "POST ");
  EXPECT_FALSE(walk.finished()) << "somebody may yet allow it";
  walk.wait(kRefusedWait - 1ns);
  EXPECT_TRUE(walk.idle());
  walk.wait(1ns);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
}

TEST(Posting, ABudgetsNoIsAboutOnePodAndWaitsAsLongAsItSays) {
  Walk walk(terms(After::kEvict, false));
  walk.ask(answer(200));
  walk.ask(answer(429, Json::object(), {{"retry-after", "30"}}));
  EXPECT_EQ(walk.answered.heard, Heard::kAgain);
  walk.wait(30s - 1ns);
  EXPECT_TRUE(walk.idle());
  walk.wait(1ns);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kPod + "/eviction");
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, TroubleOfTheServerIsNotThePostings) {
  for (const long status : {401L, 429L, 503L, 504L}) {
    Walk walk(terms(After::kDelete));
    walk.ask(answer(status, Json::object(), {{"retry-after", "7"}}));
    EXPECT_EQ(walk.answered.heard, Heard::kServer) << status;
    EXPECT_EQ(walk.answered.retry_after, Duration(7s));
    EXPECT_EQ(walk.posting, posting_of(web())) << status;
  }
  Walk walk(terms(After::kDelete));
  walk.ask(failure("connection reset"));
  EXPECT_EQ(walk.answered.heard, Heard::kServer);
  EXPECT_EQ(walk.answered.why, "connection reset");
}

TEST(Posting, AServerThatKnowsNoPolicyV1IsAskedInTheOldWay) {
  Walk walk(terms(After::kEvict, false));
  walk.ask(answer(200));
  walk.ask(told(400, "BadRequest"));
  EXPECT_EQ(walk.answered.heard, Heard::kAgain);
  walk.wait(1s);
  walk.ask(answer(201));
  EXPECT_EQ(Json::parse(walk.last.body)["apiVersion"], "policy/v1beta1");
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, AnEvictionThatIsRefusedInBothWaysIsAskedForRarely) {
  Walk walk(terms(After::kEvict, false));
  walk.ask(answer(200));
  walk.ask(told(400, "BadRequest"));
  walk.wait(1s);
  walk.ask(told(400, "BadRequest"));
  EXPECT_EQ(walk.answered.heard, Heard::kRefused);
  walk.wait(kRefusedWait);
  walk.ask(answer(201));
  EXPECT_EQ(Json::parse(walk.last.body)["apiVersion"], "policy/v1");
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, AnEventThatIsThereAlreadyWasMadeByAFormerLife) {
  Walk walk(terms(After::kStatus));
  walk.ask(answer(200));
  walk.ask(told(409, "AlreadyExists", "events"));
  EXPECT_TRUE(walk.finished());
}

TEST(Posting, EvictedAgainBeforeAllWasToldItIsOneEventThatCounts) {
  Walk walk(terms(After::kStatus));
  walk.ask(answer(200));
  walk.ask(answer(500));  // the event
  Evicted later = web();
  later.time = "2026-11-20T22:51:00Z";
  later.stamp = "000660bd13f43f40";
  evicted_again(walk.posting, later);
  EXPECT_EQ(walk.ask(answer(200)), kStatus);
  EXPECT_EQ(walk.ask(answer(201)), "POST " + kEvents + "?fieldManager=headroom");
  Json event = Json::parse(walk.last.body);
  EXPECT_EQ(event["count"], 2);
  EXPECT_EQ(event["firstTimestamp"], "2026-11-20T22:50:00Z");
  EXPECT_EQ(event["lastTimestamp"], "2026-11-20T22:51:00Z");
  evicted_again(walk.posting, later);
  walk.ask(answer(200));
  EXPECT_EQ(walk.ask(answer(200)),
            "PATCH " + kEvents + "/web.000660bd1060b840?fieldManager=headroom");
  EXPECT_EQ(Json::parse(walk.last.body)["count"], 3) << "said, not added: twice is no more";
}

TEST(Posting, AnEventThatTimeTookIsMadeAnew) {
  Walk walk(terms(After::kStatus));
  walk.ask(answer(200));
  walk.ask(answer(201));
  evicted_again(walk.posting, web());
  walk.ask(answer(200));
  EXPECT_EQ(walk.ask(told(404, "NotFound", "events")).substr(0, 6), "PATCH ");
  walk.wait(1min);
  EXPECT_EQ(walk.ask(answer(201)).substr(0, 5), "POST ");
  EXPECT_TRUE(walk.finished());
}

TEST(Backoff, GrowsToItsMostAndHeedsWhatWasAsked) {
  EXPECT_EQ(wait_after(1, 0), kFirstWait / 2);
  EXPECT_LT(wait_after(1, 0.999), kFirstWait);
  EXPECT_EQ(wait_after(3, 0), 2 * kFirstWait);
  EXPECT_EQ(wait_after(1000, 0), kLongestWait / 2);
  EXPECT_EQ(wait_after(1, 0, 60s), 60s);
  EXPECT_LE(wait_after(1, 0.999, 60s), 75s);
  EXPECT_EQ(wait_after(1, 0, 24h), kMostRetryAfter) << "a server gone mad does not silence us";
}

TEST(PostQueue, AnythingThatWasWrittenIsReadAgain) {
  PostQueue queue;
  EXPECT_EQ(*queue_of(as_text(queue)), queue);
  queue.cursor = Cursor{42, 4711};
  queue.node = {.conditions = true, .taints = false};
  take(queue, web());
  Evicted other = web();
  other.uid = "u-2";
  other.why = Evicted::Why::kTaint;
  take(queue, other);
  take(queue, web());
  ASSERT_EQ(queue.postings.size(), 2U);
  EXPECT_EQ(queue.postings[0].count, 2U);
  queue.postings[1].at(Step::kStatus).done = true;
  queue.postings[1].event_made = true;
  EXPECT_EQ(*queue_of(as_text(queue)), queue);
}

TEST(PostQueue, WhatIsNoQueueIsAnError) {
  for (const char* text : {"", "{}", "[]", "{\"version\":2}", "{\"version\":1,\"cursor\":7}"})
    EXPECT_FALSE(queue_of(text)) << text;
}

}  // namespace
}  // namespace headroom::kube
