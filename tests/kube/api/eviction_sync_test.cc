// SPDX-License-Identifier: Apache-2.0
// The audit log, reported to an API server that is away, failing, or contrary, over restarts.
#include "kube/api/eviction_sync.h"

#include "config/temp_dir.h"

#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

using namespace std::chrono_literals;
using AfterEviction = config::ApiConfig::AfterEviction;
using Json = nlohmann::json;

class EvictionSyncStory : public ::testing::Test {
 protected:
  EvictionSyncStory() { std::ofstream(dir_.path() / "evictions.jsonl"); }

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
  EvictionSync start() {
    EvictionSyncOptions options{
        .pending = {.after = AfterEviction::kDelete, .events = true, .node_name = "n1"},
        .node = {.node_name = "n1", .conditions = conditions_, .taints = false},
        .audit_log = dir_.path() / "evictions.jsonl",
        .node_status = dir_.path() / "node.json",
        .state_file = dir_.path() / "pending-evictions.json"};
    EvictionSyncPorts world{
        .now = [this] { return now_; },
        .unix_time = [] { return std::int64_t{1'795'215'001'000'001}; },
        .chance = [] { return 0.0; },
        .exchange = [this](const HttpRequest& request) { return serve(request); },
        .is_headroomd_alive = [this] { return lives_; },
        .stopping = [] { return false; }};
    return EvictionSync(std::move(options), std::move(world));
  }
  // As its thread would, for so long.
  void run(EvictionSync& eviction_sync, Duration time) {
    const Instant end = now_ + time;
    while (now_ < end)
      now_ += std::clamp<Duration>(eviction_sync.run_once(), 1ms, end - now_);
    eviction_sync.run_once();
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

TEST_F(EvictionSyncStory, AnEvictionIsReportedOnTheTurnThatReadsIt) {
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  evict("web");
  eviction_sync.run_once();
  EXPECT_EQ(asked_, (std::vector<std::string>{"PATCH /api/v1/namespaces/shop/pods/web/status",
                                              "DELETE /api/v1/namespaces/shop/pods/web",
                                              "POST /api/v1/namespaces/shop/events"}));
  EXPECT_TRUE(eviction_sync.queue().pending_evictions.empty());
  EXPECT_EQ(eviction_sync.counters().finished, 1U);
  EXPECT_NEAR(eviction_sync.counters().delay_most, 1.0, 1e-6);
  eviction_sync.run_once();
  EXPECT_EQ(asked_.size(), 3U);
}

TEST_F(EvictionSyncStory, WhatHappenedBeforeTheStartIsNotReported) {
  evict("old");
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  EXPECT_EQ(requests_, 0U);
}

TEST_F(EvictionSyncStory, AnOutageAndARestartLoseNothingAndTellNothingTwice) {
  away_ = true;
  {
    EvictionSync eviction_sync = start();
    eviction_sync.run_once();
    for (int i = 0; i < 20; ++i)
      evict("a" + std::to_string(i));
    run(eviction_sync, 20s);
    EXPECT_EQ(eviction_sync.queue().pending_evictions.size(), 20U);
    EXPECT_TRUE(eviction_sync.state().contains("error"));
    EXPECT_LT(requests_, 15U) << "a server in trouble is left alone, however much there is to tell";
  }
  for (int i = 0; i < 5; ++i)
    evict("b" + std::to_string(i));
  EvictionSync eviction_sync = start();
  run(eviction_sync, 5s);
  away_ = false;
  run(eviction_sync, 11s);
  EXPECT_TRUE(eviction_sync.queue().pending_evictions.empty());
  EXPECT_EQ(deletions(), 25U);
  EXPECT_EQ(asked_.size(), 75U);
  EXPECT_EQ(std::set<std::string>(asked_.begin(), asked_.end()).size(), 51U)
      << "25 of status and deletion each, and one path for Events";
  EXPECT_FALSE(eviction_sync.state().contains("error"));
}

TEST_F(EvictionSyncStory, EveryFaultIsSurvived) {
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  faults_ = {500, 503, 429, 401, 500, 502, 504, 408, 418};
  evict("web");
  run(eviction_sync, 10min);
  EXPECT_TRUE(eviction_sync.queue().pending_evictions.empty());
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(EvictionSyncStory, ARefusedOneBlocksNoOther) {
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  evict("first");
  evict("second");
  faults_ = {403, 403, 403};  // all of the first
  run(eviction_sync, 1s);
  EXPECT_EQ(eviction_sync.queue().pending_evictions.size(), 1U);
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(EvictionSyncStory, AStateThatIsDamagedIsSetAsideAndSaid) {
  dir_.write("pending-evictions.json", "{\"version\":");
  evict("old");
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  EXPECT_EQ(requests_, 0U);
  EXPECT_TRUE(std::filesystem::exists(dir_.path() / "pending-evictions.json.damaged"));
  evict("new");
  eviction_sync.run_once();
  EXPECT_EQ(deletions(), 1U);
}

TEST_F(EvictionSyncStory, AStateThatCannotBeWrittenDoesNotKeepItFromTelling) {
  std::filesystem::create_directory(dir_.path() / "pending-evictions.json");
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  evict("web");
  eviction_sync.run_once();
  EXPECT_EQ(deletions(), 1U);
  EXPECT_GT(eviction_sync.counters().unwritten, 0U);
}

TEST_F(EvictionSyncStory, LinesThatAreNoneAreCountedAndPassedOver) {
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  std::ofstream(dir_.path() / "evictions.jsonl", std::ios::app) << "half a li\n";
  evict("web");
  eviction_sync.run_once();
  EXPECT_EQ(deletions(), 1U);
  EXPECT_EQ(eviction_sync.counters().unread, 1U);
}

TEST_F(EvictionSyncStory, ConditionsOfADaemonThatIsGoneAreUnknown) {
  conditions_ = true;
  const Json node{
      {"status",
       {{"conditions",
         {{{"type", "MemoryPressure"}, {"status", "True"}, {"lastTransitionTime", "t"}}}}}}};
  dir_.write("node.json", node.dump());
  EvictionSync eviction_sync = start();
  eviction_sync.run_once();
  ASSERT_EQ(bodies_.size(), 1U);
  EXPECT_NE(bodies_[0].find("\"HeadroomMemoryPressure\",\"status\":\"True\""), std::string::npos);
  lives_ = false;
  run(eviction_sync, 2min);
  ASSERT_EQ(bodies_.size(), 2U);
  EXPECT_EQ(bodies_[1].find("\"status\":\"True\""), std::string::npos);
  lives_ = true;
  run(eviction_sync, 30s);
  ASSERT_EQ(bodies_.size(), 3U);
  EXPECT_EQ(bodies_[2], bodies_[0]) << "the file counts again";
}

}  // namespace
}  // namespace headroom::kube
