// SPDX-License-Identifier: Apache-2.0
#include "report/http/server/http_server.h"
#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string text_of(ResponseBody& body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

struct RouterTest : ::testing::Test {
  RouterTest() {
    views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
    views->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  }
  std::shared_ptr<PublishedViews> views = std::make_shared<PublishedViews>();
  Router router{{.views = views, .now = [] { return sample_at(10'250); }}, {.views = views}};
};

TEST_F(RouterTest, EveryPathOfTheIndexIsServed) {
  const std::string index = text_of(*router.answer({.path = "/index"}).body);
  std::size_t paths = 0;
  for (std::size_t at = 0; (at = index.find("\n/", at)) != std::string::npos; ++at, ++paths) {
    const std::string path = index.substr(at + 1, index.find(' ', at) - at - 1);
    const HttpResponse answer = router.answer({.path = path});
    EXPECT_EQ(answer.status, 200u) << path;
    // The sample's audit log is not there, its CPU and memory managers are off, and it is too young
    // for events and a history.
    const bool none_yet = path == "/api/evictions" || path == "/api/cpus" ||
                          path == "/api/memory" || path == "/api/events" || path == "/api/history";
    EXPECT_GT(text_of(*answer.body).size(), none_yet ? 1u : 100u) << path;
  }
  EXPECT_EQ(paths, 13u);
}

TEST_F(RouterTest, TheSummaryIsJsonAndUsesItsArgument) {
  const HttpResponse all = router.answer({.path = "/stats/summary"});
  EXPECT_EQ(all.content_type, "application/json");
  const HttpResponse less =
      router.answer({.path = "/stats/summary", .argument = [](const char* name) {
                       return std::string_view(name) == "only_cpu_and_memory"
                                  ? std::string_view("true")
                                  : std::string_view();
                     }});
  EXPECT_LT(text_of(*less.body).size(), text_of(*all.body).size());
}

TEST_F(RouterTest, RejectedRequestsAreCounted) {
  router.count_rejected();
  const std::string page = text_of(*router.answer({.path = "/metrics"}).body);
  EXPECT_NE(page.find("\nheadroom_http_refused_total 1\n"), std::string::npos);
}

TEST_F(RouterTest, UnknownPathsAreNotFound) {
  EXPECT_EQ(router.answer({.path = "/metrics/"}).status, 404u);
}

}  // namespace
}  // namespace headroom::report
