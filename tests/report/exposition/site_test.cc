// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/site.h"

#include "report/sample.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

std::string text_of(Body& body) {
  std::string text, room(4096, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

struct SiteTest : ::testing::Test {
  SiteTest() {
    shown->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
    shown->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  }
  std::shared_ptr<Shown> shown = std::make_shared<Shown>();
  Site site{{.shown = shown, .now = [] { return sample_at(10'250); }}, {.shown = shown}};
};

TEST_F(SiteTest, EveryPathOfTheIndexIsServed) {
  const std::string index = text_of(*site.answer({.path = "/index"}).body);
  std::size_t paths = 0;
  for (std::size_t at = 0; (at = index.find("\n/", at)) != std::string::npos; ++at, ++paths) {
    const std::string path = index.substr(at + 1, index.find(' ', at) - at - 1);
    const Answer answer = site.answer({.path = path});
    EXPECT_EQ(answer.status, 200u) << path;
    // The sample's audit log is not there, and nobody deals its CPUs out.
    const bool none_yet = path == "/api/evictions" || path == "/api/cpus";
    EXPECT_GT(text_of(*answer.body).size(), none_yet ? 1u : 100u) << path;
  }
  EXPECT_EQ(paths, 8u);
}

TEST_F(SiteTest, TheSummaryIsJsonAndHeedsItsArgument) {
  const Answer all = site.answer({.path = "/stats/summary"});
  EXPECT_EQ(all.content_type, "application/json");
  const Answer less = site.answer({.path = "/stats/summary", .argument = [](const char* name) {
                                     return std::string_view(name) == "only_cpu_and_memory"
                                                ? std::string_view("true")
                                                : std::string_view();
                                   }});
  EXPECT_LT(text_of(*less.body).size(), text_of(*all.body).size());
}

TEST_F(SiteTest, TheRefusedAreCounted) {
  site.note_refused();
  const std::string page = text_of(*site.answer({.path = "/metrics"}).body);
  EXPECT_NE(page.find("\nheadroom_http_refused_total 1\n"), std::string::npos);
}

TEST_F(SiteTest, ElsewhereIsNothing) {
  EXPECT_EQ(site.answer({.path = "/metrics/"}).status, 404u);
}

}  // namespace
}  // namespace headroom::report
