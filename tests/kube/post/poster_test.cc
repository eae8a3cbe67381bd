// SPDX-License-Identifier: Apache-2.0
// The audit log, told to an API server that is away, in trouble, or contrary, over restarts.
#include "kube/post/poster.h"

#include "config/temp_dir.h"

#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using After = config::ApiConfig::After;
using Json = nlohmann::json;

class PosterStory : public ::testing::Test {
 protected:
  PosterStory() { std::ofstream(dir_.path() / "evictions.jsonl"); }

  void evict(const std::string& name) {
    const Json line{{"time", "2026-11-20T22:50:00.000001Z"},
                    {"outcome", "evicted"},
                    {"pod", {{"namespace", "shop"}, {"name", name}, {"uid", "u-" + name}}},
                    {"signal", "memory.available"},
                    {"kind", "hard"},
                    {"message", "low"}};
    std::ofstream(dir_.path() / "evictions.jsonl", std::ios::app) << line.dump() << '\n';
  }

  // A life of the program.
  Poster start() {
    PosterTerms terms{.posting = {.after = After::kDelete, .events = true, .node_name = "n1"},
                      .node = {.node_name = "n1", .conditions = conditions_, .taints = false},
                      .audit_log = dir_.path() / "evictions.jsonl",
                      .node_status = dir_.path() / "node.json",
                      .state_file = dir_.path() / "postings.json"};
    PosterWorld world{.now = [this] { return now_; },
                      .unix_time = [] { return std::int64_t{1'795'215'001'000'001}; },
                      .chance = [] { return 0.0; },
                      .exchange = [this](const HttpRequest& request) { return serve(request); },
                      .headroomd_lives = [this] { return lives_; },
                      .stopping = [] { return false; }};
    return Poster(std::move(terms), std::move(world));
  }
  // As its thread would, for so long.
  void run(Poster& poster, Duration time) {
    const Instant end = now_ + time;
    while (now_ < end)
      now_ += std::clamp<Duration>(poster.turn(), 1ms, end - now_);
    poster.turn();
  }

  Result<HttpResponse> serve(const HttpRequest& request) {
    ++requests_;
    if (away_) return failure("connect: Connection refused");
    if (!faults_.empty()) {
      const long status = faults_.back();
      faults_.pop_back();
      return HttpResponse{.status = status};
    }
    asked_.push_back(request.method + " " + request.path.substr(0, request.path.find('?')));
    bodies_.push_back(request.body);
    return HttpResponse{.status = request.method == "POST" ? 201 : 200};
  }
  std::size_t deletions() const {
    return static_cast<std::size_t>(std::count_if(
        asked_.begin(), asked_.end(), [](const auto& one) { return one.starts_with("DELETE"); }));
  }

  test::TempDir dir_;
  Instant now_{1000s};
  bool away_ = false, conditions_ = false, lives_ = true;
  std::vector<long> faults_;  // statuses, the last one first
  std::size_t requests_ = 0;
  std::vector<std::string> asked_, bodies_;
};

TEST_F(PosterStory, AnEvictionIsToldOnTheTurnThatReadsIt) {
  Poster poster = start();
  poster.turn();
  evict("web");
  poster.turn();
  EXPECT_EQ(asked_, (std::vector<std::string>{"PATCH /api/v1/namespaces/shop/pods/web/status",
                                              "DELETE /api/v1/namespaces/shop/pods/web",
                                              "POST /api/v1/namespaces/shop/events"}));
  EXPECT_TRUE(poster.queue().postings.empty());
  EXPECT_EQ(poster.tally().finished, 1U);
  EXPECT_NEAR(poster.tally().delay_most, 1.0, 1e-6);
  poster.turn();
  EXPECT_EQ(asked_.size(), 3U);
}

TEST_F(PosterStory, WhatHappenedBeforeAnybodyListenedIsNotTold) {
  evict("old");
  Poster poster = start();
  poster.turn();
  EXPECT_EQ(requests_, 0U);
}

TEST_F(PosterStory, AnOutageAndARestartLoseNothingAndTellNothingTwice) {
  away_ = true;
  {
    Poster poster = start();
    poster.turn();
    for (int i = 0; i < 20; ++i)
      evict("a" + std::to_string(i));
    run(poster, 20s);
    EXPECT_EQ(poster.queue().postings.size(), 20U);
    EXPECT_TRUE(poster.state().contains("trouble"));
    EXPECT_LT(requests_, 15U) << "a server in trouble is left alone, however much there is to tell";
  }
  for (int i = 0; i < 5; ++i)
    evict("b" + std::to_string(i));
  Poster poster = start();
  run(poster, 5s);
  away_ = false;
  run(poster, 11s);
  EXPECT_TRUE(poster.queue().postings.empty());
  EXPECT_EQ(deletions(), 25U);
  EXPECT_EQ(asked_.size(), 75U);
  EXPECT_EQ(std::set<std::string>(asked_.begin(), asked_.end()).size(), 51U)
      << "25 of status and deletion each, and one path for Events";
  EXPECT_FALSE(poster.state().contains("trouble"));
}

TEST_F(PosterStory, EveryFaultIsSurvived) {
  Poster poster = start();
  poster.turn();
  faults_ = {500, 503, 429, 401, 500, 502, 504, 408, 418};
  evict("web");
  run(poster, 10min);
  EXPECT_TRUE(poster.queue().postings.empty());
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(PosterStory, OneThatIsRefusedHoldsUpNobodyElse) {
  Poster poster = start();
  poster.turn();
  evict("first");
  evict("second");
  faults_ = {403, 403, 403};  // all of the first
  run(poster, 1s);
  EXPECT_EQ(poster.queue().postings.size(), 1U);
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(PosterStory, AStateThatIsDamagedIsSetAsideAndSaid) {
  dir_.write("postings.json", "{\"version\":");
  evict("old");
  Poster poster = start();
  poster.turn();
  EXPECT_EQ(requests_, 0U);
  EXPECT_TRUE(std::filesystem::exists(dir_.path() / "postings.json.damaged"));
  evict("new");
  poster.turn();
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(PosterStory, AStateThatCannotBeWrittenDoesNotKeepItFromTelling) {
  std::filesystem::create_directory(dir_.path() / "postings.json");
  Poster poster = start();
  poster.turn();
  evict("web");
  poster.turn();
  EXPECT_EQ(deletions(), 1U);
  EXPECT_GT(poster.tally().unwritten, 0U);
}

TEST_F(PosterStory, LinesThatAreNoneAreCountedAndPassedOver) {
  Poster poster = start();
  poster.turn();
  std::ofstream(dir_.path() / "evictions.jsonl", std::ios::app) << "half a li\n";
  evict("web");
  poster.turn();
  EXPECT_EQ(deletions(), 1U);
  EXPECT_EQ(poster.tally().unread, 1U);
}

TEST_F(PosterStory, ConditionsOfADaemonThatIsGoneAreUnknown) {
  conditions_ = true;
  const Json node{
      {"status",
       {{"conditions",
         {{{"type", "MemoryPressure"}, {"status", "True"}, {"lastTransitionTime", "t"}}}}}}};
  dir_.write("node.json", node.dump());
  Poster poster = start();
  poster.turn();
  ASSERT_EQ(bodies_.size(), 1U);
  EXPECT_NE(bodies_[0].find("\"HeadroomMemoryPressure\",\"status\":\"True\""), std::string::npos);
  lives_ = false;
  run(poster, 2min);
  ASSERT_EQ(bodies_.size(), 2U);
  EXPECT_EQ(bodies_[1].find("\"status\":\"True\""), std::string::npos);
  lives_ = true;
  run(poster, 30s);
  ASSERT_EQ(bodies_.size(), 3U);
  EXPECT_EQ(bodies_[2], bodies_[0]) << "the file counts again";
}

}  // namespace
}  // namespace headroom::kube
