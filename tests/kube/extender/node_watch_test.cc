// SPDX-License-Identifier: Apache-2.0
// The nodes' summaries, by lists and watches of an API server.
#include "kube/extender/node_watch.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;

const WallTime kNow = *parse_rfc3339("2026-11-20T23:00:00Z");

Json node(const std::string& name, const std::string& version, std::optional<double> contention) {
  Json metadata{{"name", name}, {"resourceVersion", version}};
  if (contention)
    metadata["annotations"] = {
        {kSummaryAnnotation, as_text(NodeSummary{.time = kNow, .cpu_contention = contention})}};
  return {{"kind", "PartialObjectMetadata"}, {"metadata", std::move(metadata)}};
}

Json page(const Json& items, const std::string& version, const std::string& next = "") {
  return {{"metadata", {{"resourceVersion", version}, {"continue", next}}}, {"items", items}};
}

std::string event(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + "\n";
}

class NodeWatchTest : public testing::Test {
 protected:
  Result<HttpResponse> answer(const HttpRequest& request) {
    asked.push_back(request.path);
    EXPECT_FALSE(answers.empty()) << request.path;
    HttpResponse next = answers.front();
    answers.pop_front();
    if (!request.on_data || !next.good()) return next;
    for (const char byte : next.body)  // in the smallest pieces
      EXPECT_TRUE(request.on_data({&byte, 1}));
    return HttpResponse{.status = next.status};
  }
  void will_answer(const std::string& body, long status = 200) {
    answers.push_back({.status = status, .body = body});
  }
  std::optional<double> contention(const std::string& name) const {
    std::optional<double> found;
    table.find(name, [&](const NodeSummary* summary) {
      if (summary) found = summary->cpu_contention;
    });
    return found;
  }

  NodeTable table;
  NodeWatch watch{table, [this](const HttpRequest& request) { return answer(request); }};
  std::deque<HttpResponse> answers;
  std::vector<std::string> asked;
};

TEST_F(NodeWatchTest, ListsAllPagesThenWatchesFromThere) {
  EXPECT_FALSE(watch.has_listed());
  will_answer(page(Json::array({node("n1", "1", 0.1), node("n2", "2", {})}), "7", "a/b").dump());
  will_answer(page(Json::array({node("n3", "3", 0.3)}), "8").dump());
  ASSERT_TRUE(watch.step());
  EXPECT_TRUE(watch.has_listed());
  EXPECT_EQ(asked[1], "/api/v1/nodes?limit=500&continue=a%2Fb");
  EXPECT_EQ(contention("n1"), 0.1);
  EXPECT_EQ(contention("n3"), 0.3);
  EXPECT_EQ(table.size(), 2u);
  will_answer(event("MODIFIED", node("n1", "9", 0.5)) + event("ADDED", node("n4", "10", 0.4)) +
              event("DELETED", node("n3", "11", 0.3)) + event("MODIFIED", node("n4", "12", {})) +
              "no event\n" + event("BOOKMARK", {{"metadata", {{"resourceVersion", "20"}}}}));
  ASSERT_TRUE(watch.step());
  EXPECT_NE(asked[2].find("watch=1&"), std::string::npos);
  EXPECT_NE(asked[2].find("resourceVersion=8&"), std::string::npos);
  EXPECT_EQ(contention("n1"), 0.5);
  EXPECT_EQ(contention("n4"), std::nullopt);
  EXPECT_EQ(table.size(), 1u);
  will_answer("");
  ASSERT_TRUE(watch.step());
  EXPECT_NE(asked[3].find("resourceVersion=20&"), std::string::npos);
}

TEST_F(NodeWatchTest, AVersionThatIsTooOldIsListedAgain) {
  will_answer(page(Json::array({node("n1", "1", 0.1)}), "7").dump());
  ASSERT_TRUE(watch.step());
  will_answer(event("ERROR", {{"kind", "Status"}, {"code", 410}, {"message", "too old"}}));
  const auto ended = watch.step();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().what, "watch nodes: too old");
  EXPECT_EQ(contention("n1"), 0.1) << "what was known stays";
  will_answer(page(Json::array({node("n2", "1", 0.2)}), "9").dump());
  ASSERT_TRUE(watch.step());
  EXPECT_EQ(contention("n1"), std::nullopt);
  will_answer("{}", 410);
  EXPECT_FALSE(watch.step());
  will_answer(page(Json::array(), "9").dump());
  ASSERT_TRUE(watch.step());
  EXPECT_EQ(asked.back(), "/api/v1/nodes?limit=500");
}

TEST_F(NodeWatchTest, AnAnswerThatIsNoListChangesNothing) {
  for (const char* body : {"", "[]", "{}", R"({"items":7,"metadata":{}})"}) {
    will_answer(body);
    EXPECT_FALSE(watch.step()) << body;
  }
  will_answer("{}", 403);
  EXPECT_FALSE(watch.step());
  EXPECT_FALSE(watch.has_listed());
}

TEST(EventLines, ALineHasALimit) {
  EventLines lines;
  std::vector<std::string> taken;
  const auto take = [&](const std::string& line) { taken.push_back(line); };
  EXPECT_TRUE(lines.add("a\nb", take));
  EXPECT_TRUE(lines.add("c\n", take));
  EXPECT_EQ(taken, (std::vector<std::string>{"a", "bc"}));
  EXPECT_FALSE(lines.add(std::string(EventLines::kMaxLine + 1, 'x'), take));
}

TEST(NodeTable, IsBounded) {
  NodeTable table;
  for (std::size_t i = 0; i < kMaxExtenderNodes + 10; ++i)
    table.set("n" + std::to_string(i), NodeSummary{});
  EXPECT_EQ(table.size(), kMaxExtenderNodes);
}

}  // namespace
}  // namespace headroom::kube
