// SPDX-License-Identifier: Apache-2.0
// Who may read the metrics: what the API server is asked, and what becomes of its answers.
#include "kube/metrics/access_check.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kKnown =
    R"({"status":{"authenticated":true,"user":{"username":"system:serviceaccount:m:p",)"
    R"("uid":"u1","groups":["system:authenticated"],"extra":{"pod":["p-0"]}}}})";
constexpr const char* kUnknown = R"({"status":{"authenticated":false,"error":"invalid"}})";

// An API server with one answer for each kind of review.
struct Reviews {
  HttpResponse token{.status = 201, .body = kKnown};
  HttpResponse access{.status = 201, .body = R"({"status":{"allowed":true}})"};
  std::vector<HttpRequest> sent{};
  Instant now{1h};
  AccessCheck check{[this](const HttpRequest& request) -> Result<HttpResponse> {
                      sent.push_back(request);
                      return request.path.ends_with("/tokenreviews") ? token : access;
                    },
                    [this] { return now; }};
};

TEST(AccessCheck, AsksForTheTokenAndThenForItsUser) {
  Reviews reviews;
  const auto access = reviews.check.check("secret", "/metrics");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(*access, Access::kAllowed);
  ASSERT_EQ(reviews.sent.size(), 2U);
  EXPECT_EQ(reviews.sent[0].method, "POST");
  EXPECT_EQ(reviews.sent[0].path, "/apis/authentication.k8s.io/v1/tokenreviews");
  EXPECT_EQ(Json::parse(reviews.sent[0].body),
            Json::parse(R"({"kind":"TokenReview",)"
                        R"("apiVersion":"authentication.k8s.io/v1","spec":{"token":"secret"}})"));
  EXPECT_EQ(reviews.sent[1].path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  EXPECT_EQ(
      Json::parse(reviews.sent[1].body),
      Json::parse(
          R"({"kind":"SubjectAccessReview",)"
          R"("apiVersion":"authorization.k8s.io/v1","spec":{"user":"system:serviceaccount:m:p",)"
          R"("uid":"u1","groups":["system:authenticated"],"extra":{"pod":["p-0"]},)"
          R"("nonResourceAttributes":{"path":"/metrics","verb":"get"}}})"));
}

struct Answered {
  const char* name;
  const char* token;
  const char* access;
  Access expected;
};

class AccessCheckAnswers : public testing::TestWithParam<Answered> {};
INSTANTIATE_TEST_SUITE_P(
    All, AccessCheckAnswers,
    testing::Values(
        Answered{"Allowed", kKnown, R"({"status":{"allowed":true}})", Access::kAllowed},
        Answered{"Forbidden", kKnown, R"({"status":{"allowed":false}})", Access::kForbidden},
        Answered{"NoWordOfIt", kKnown, R"({"status":{}})", Access::kForbidden},
        Answered{"AllowedAndDenied", kKnown, R"({"status":{"allowed":true,"denied":true}})",
                 Access::kForbidden},
        Answered{"AllowedAsText", kKnown, R"({"status":{"allowed":"true"}})", Access::kForbidden},
        Answered{"UnknownToken", kUnknown, R"({"status":{"allowed":true}})",
                 Access::kUnauthenticated}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_P(AccessCheckAnswers, Decide) {
  Reviews reviews;
  reviews.token.body = GetParam().token;
  reviews.access.body = GetParam().access;
  const auto access = reviews.check.check("t", "/metrics");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(*access, GetParam().expected);
}

// Nothing is allowed, and nothing is kept: the next request asks again.
TEST(AccessCheck, AnAnswerThatIsNoneIsAnError) {
  for (const HttpResponse& bad :
       {HttpResponse{.status = 500, .body = kKnown}, HttpResponse{.status = 403, .body = "{}"},
        HttpResponse{.status = 201, .body = "<html>"}, HttpResponse{.status = 201, .body = "{}"},
        HttpResponse{.status = 201, .body = R"({"status":{"authenticated":true}})"}}) {
    Reviews reviews;
    reviews.token = bad;
    EXPECT_FALSE(reviews.check.check("t", "/metrics")) << bad.body;
    reviews.token = {.status = 201, .body = kKnown};
    reviews.access = {.status = 500, .body = R"({"status":{"allowed":true}})"};
    EXPECT_FALSE(reviews.check.check("t", "/metrics")) << bad.body;
    reviews.access = {.status = 201, .body = R"({"status":{"allowed":true}})"};
    EXPECT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
  }
}

TEST(AccessCheck, KeepsAnAnswerForAWhile) {
  Reviews reviews;
  ASSERT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
  reviews.token.body = kUnknown;
  reviews.now += AccessCheck::kAllowedFor - 1s;
  EXPECT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
  EXPECT_EQ(reviews.sent.size(), 2U);
  reviews.now += 1s;
  EXPECT_EQ(reviews.check.check("t", "/metrics").value(), Access::kUnauthenticated);
  EXPECT_EQ(reviews.sent.size(), 3U);
  reviews.token.body = kKnown;
  reviews.now += AccessCheck::kRefusedFor;  // a refusal is kept for less time
  EXPECT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
}

TEST(AccessCheck, KeepsItForThatTokenAndPathAlone) {
  Reviews reviews;
  ASSERT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
  reviews.access.body = R"({"status":{"allowed":false}})";
  EXPECT_EQ(reviews.check.check("t", "/metrics/cadvisor").value(), Access::kForbidden);
  EXPECT_EQ(reviews.check.check("t2", "/metrics").value(), Access::kForbidden);
  EXPECT_EQ(reviews.check.check("t", "/metrics").value(), Access::kAllowed);
}

TEST(AccessCheck, ManyTokensDoNotFillTheMemory) {
  Reviews reviews;
  for (std::size_t i = 0; i < 3 * AccessCheck::kMaxKept; ++i)
    ASSERT_TRUE(reviews.check.check("t" + std::to_string(i), "/metrics"));
  reviews.sent.clear();
  // The last ones are kept, the first ones are not.
  EXPECT_TRUE(reviews.check.check("t" + std::to_string(3 * AccessCheck::kMaxKept - 1), "/metrics"));
  EXPECT_EQ(reviews.sent.size(), 0U);
  EXPECT_TRUE(reviews.check.check("t0", "/metrics"));
  EXPECT_EQ(reviews.sent.size(), 2U);
}

}  // namespace
}  // namespace headroom::kube
