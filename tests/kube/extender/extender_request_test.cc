// SPDX-License-Identifier: Apache-2.0
// The extender's protocol: what kube-scheduler sends and expects, and bodies that it would not
// send.
#include "kube/extender/extender_request.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using Json = nlohmann::json;

const WallTime kNow = *parse_rfc3339("2026-11-20T23:00:00Z");

class ExtenderRequest : public testing::Test {
 protected:
  ExtenderRequest() {
    summaries["idle"] = {.time = kNow, .cpu_contention = 0, .memory_left = 0.8};
    summaries["busy"] = {.time = kNow, .cpu_contention = 0.25, .memory_left = 0.5};
    summaries["short"] = {.time = kNow, .hard_threshold = "memory.available"};
  }
  Json filter(const Json& body) { return Json::parse(filter_answer(args(body), find, kNow)); }
  Json prioritize(const Json& body) {
    return Json::parse(prioritize_answer(args(body), find, kNow));
  }
  static ExtenderArgs args(const Json& body) {
    auto read = extender_args_of(body.dump());
    EXPECT_TRUE(read) << read.error().what;
    return read ? std::move(*read) : ExtenderArgs{};
  }

  std::map<std::string, NodeSummary> summaries;
  const FindSummary find = [this](const std::string& node, const UseSummary& use) {
    const auto found = summaries.find(node);
    use(found == summaries.end() ? nullptr : &found->second);
  };
};

// As Go's encoder writes ExtenderArgs with nodeCacheCapable: true.
Json by_name(const Json& names) {
  return {{"Pod", {{"metadata", {{"name", "web"}}}}}, {"Nodes", nullptr}, {"NodeNames", names}};
}

TEST_F(ExtenderRequest, FilterLeavesOutAHardThresholdAlone) {
  const Json answer = filter(by_name({"idle", "short", "busy", "never-seen"}));
  EXPECT_EQ(answer["NodeNames"], (Json{"idle", "busy", "never-seen"}));
  EXPECT_EQ(answer["FailedNodes"].size(), 1u);
  EXPECT_EQ(answer["FailedNodes"]["short"],
            "headroom: the node has crossed its hard threshold of memory.available");
  EXPECT_FALSE(answer.contains("Nodes"));
  EXPECT_FALSE(answer.contains("Error"));
}

TEST_F(ExtenderRequest, PrioritizeScoresEachNodeInItsPlace) {
  EXPECT_EQ(prioritize(by_name({"busy", "never-seen", "idle", "short"})),
            (Json{{{"Host", "busy"}, {"Score", 5}},
                  {{"Host", "never-seen"}, {"Score", 5}},
                  {{"Host", "idle"}, {"Score", 10}},
                  {{"Host", "short"}, {"Score", 0}}}));
  EXPECT_EQ(prioritize(by_name(Json::array())), Json::array());
}

TEST_F(ExtenderRequest, WholeNodesComeBackAsTheyCame) {
  const auto node = [](const char* name, const NodeSummary& summary) {
    return Json{
        {"metadata", {{"name", name}, {"annotations", {{kSummaryAnnotation, as_text(summary)}}}}},
        {"spec", {{"podCIDR", "10.0.0.0/24"}}}};
  };
  const Json idle = node("n1", {.time = kNow, .cpu_contention = 0, .memory_left = 1});
  const Json bad = node("n2", {.time = kNow, .hard_threshold = "pid.available"});
  const Json bare{{"metadata", {{"name", "n3"}}}};
  const Json body{{"Pod", Json::object()}, {"Nodes", {{"items", {idle, bad, bare}}}}};
  const Json answer = filter(body);
  EXPECT_EQ(answer["Nodes"]["items"], (Json{idle, bare}));
  EXPECT_TRUE(answer["FailedNodes"].contains("n2"));
  EXPECT_FALSE(answer.contains("NodeNames"));
  EXPECT_EQ(prioritize(body)[0]["Score"], 10);
  EXPECT_EQ(prioritize(body)[2]["Score"], 5) << "no annotation";
}

TEST(ExtenderArgs, AHostileBodyIsRefused) {
  const std::string deep = R"({"NodeNames":)" + std::string(100, '[') + std::string(100, ']') + "}";
  const std::string quoted =
      R"({"NodeNames":["a"],"Pod":"\"[[[[[[)" + std::string(100, '[') + "\"}";
  EXPECT_TRUE(extender_args_of(quoted)) << "brackets of a string are none";
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), deep,
        std::string(1 << 20, '['), std::string(kMaxExtenderBody + 1, ' '),
        std::string(R"({"NodeNames":"a"})"), std::string(R"({"NodeNames":[1]})"),
        std::string(R"({"NodeNames":[""]})"), std::string(R"({"Nodes":{"items":{}}})"),
        std::string(R"({"Nodes":{"items":[{"metadata":{}}]}})"), std::string(R"({"Nodes":[]})"),
        R"({"NodeNames":[")" + std::string(254, 'n') + R"("]})"})
    EXPECT_FALSE(extender_args_of(body)) << body.substr(0, 60);
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMaxExtenderNodes; ++i)
    many.push_back("n");
  EXPECT_FALSE(extender_args_of(by_name(many).dump()));
  many.erase(0);
  EXPECT_TRUE(extender_args_of(by_name(many).dump()));
}

}  // namespace
}  // namespace headroom::kube
