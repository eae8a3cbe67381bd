// SPDX-License-Identifier: Apache-2.0
// The half that goes in, against a kubelet that is away, mad or back again.
#include "config/temp_dir.h"
#include "kube/health_file.h"
#include "kube/pod_cgroup_watch.h"
#include "kube/poll_backoff.h"
#include "kube/small_server.h"
#include "kube/workers.h"

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;
using test::SmallServer;
using test::TempDir;
using Json = nlohmann::json;
using namespace std::chrono_literals;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string pods(std::initializer_list<const char*> uids) {
  Json list{{"kind", "PodList"}, {"items", Json::array()}};
  for (const char* uid : uids)
    list["items"].push_back({{"metadata", {{"name", uid}, {"uid", uid}}},
                             {"spec", {{"containers", {{{"name", "main"}}}}}},
                             {"status", {{"phase", "Running"}}}});
  return list.dump();
}

// headroom-kube's half, a kubelet, and what it wrote.
class FollowKubelet : public ::testing::Test {
 protected:
  FollowKubelet()
      : kubelet_([this](const std::string& request) { return act(request); }),
        board_(dir_.path() / "status.json") {
    config_.kubernetes.run_dir = dir_.path();
    config_.kubernetes.kubelet.url = kubelet_.url();
    config_.kubernetes.kubelet.period = 50ms;
    config_.kubernetes.kubelet.timeout = 300ms;
  }
  ~FollowKubelet() override { half_ = {}; }

  void start() {
    half_ = std::jthread([this](const std::stop_token& stop) {
      sync_from_kubelet(config_, board_, stop, dir_.path() / "cgroup");
    });
  }
  void answer(SmallServer::Act pods) {
    const std::lock_guard lock(mutex_);
    pods_ = std::move(pods);
  }
  SmallServer::Act act(const std::string& request) {
    const std::lock_guard lock(mutex_);
    return request.starts_with("GET /configz ") ? configz_ : pods_;
  }
  bool has(const char* uid) const {
    return fs::exists(dir_.path() / "pods" / (std::string(uid) + ".json"));
  }
  Json status() const {
    const Json all = Json::parse(text_of(dir_.path() / "status.json"), nullptr, false);
    return all.is_object() ? all.value("kubelet", Json::object()) : Json::object();
  }
  static bool wait_for(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  bool wait_for_failures(int count) {
    return wait_for([&] { return status().value("failedPolls", 0) >= count; });
  }

  TempDir dir_;
  std::mutex mutex_;
  SmallServer::Act pods_ = SmallServer::answer(200, pods({"a", "b"}));
  SmallServer::Act configz_ = SmallServer::answer(404, "");
  SmallServer kubelet_;
  config::Config config_;
  HealthFile board_;
  std::jthread half_;
};

TEST_F(FollowKubelet, PodsComeAndGo) {
  start();
  ASSERT_TRUE(wait_for([&] { return has("a") && has("b"); }));
  answer(SmallServer::answer(200, pods({"b", "c"})));
  ASSERT_TRUE(wait_for([&] { return has("c") && !has("a"); }));
  EXPECT_TRUE(has("b"));
  ASSERT_TRUE(wait_for([&] { return status().value("pods", 0) == 2; }));
  EXPECT_EQ(status()["lastPollSucceeded"], true);
  EXPECT_GT(status()["podsAt"], 0);
}

TEST_F(FollowKubelet, ANewPodsCgroupIsAskedAboutAtOnce) {
  const fs::path tier = dir_.path() / "cgroup/kubepods.slice/kubepods-burstable.slice";
  fs::create_directories(tier);
  config_.kubernetes.kubelet.period = 1h;
  start();
  ASSERT_TRUE(wait_for([&] { return status().value("polls", 0) == 1; }));
  answer(SmallServer::answer(200, pods({"a", "b", "c"})));
  // The watches are added before the wait; made twice in case the first came before them.
  ASSERT_TRUE(wait_for([&] {
    const fs::path made = tier / "kubepods-burstable-podc.slice";
    fs::remove(made);
    fs::create_directory(made);
    return has("c");
  }));
  EXPECT_TRUE(wait_for([&] { return status().value("pollsForNewPods", 0) >= 1; }));
  EXPECT_LE(status().value("polls", 0), 20);
}

TEST(QueryPace, AsksAtOnceThenLessAndLess) {
  const QueryPace::Time start{std::chrono::hours(1)};
  QueryPace pace(10s);
  pace.asked(start, false, false);
  EXPECT_EQ(pace.due(start + 5s), start + 5s) << "the last query was long ago";
  EXPECT_EQ(pace.due(start + 1ms), start + 200ms);
  pace.asked(start, true, true);
  EXPECT_EQ(pace.due(start), start + 200ms) << "it brought the pod";
  for (const auto gap : {400ms, 800ms, 1600ms, 3200ms, 6400ms, 10000ms, 10000ms}) {
    pace.asked(start, true, false);
    EXPECT_EQ(pace.due(start), start + gap);
  }
  pace.asked(start, false, false);
  EXPECT_EQ(pace.due(start), start + 200ms);
}

TEST(PodCgroupWatch, KnowsPodsByTheirNames) {
  EXPECT_TRUE(is_pod_cgroup_name("kubepods-burstable-pod0f3c.slice"));
  EXPECT_TRUE(is_pod_cgroup_name("kubepods-pod0f3c.slice"));
  EXPECT_TRUE(is_pod_cgroup_name("pod0f3c"));
  EXPECT_FALSE(is_pod_cgroup_name("kubepods-burstable.slice"));
  EXPECT_FALSE(is_pod_cgroup_name("burstable"));
}

TEST(PodCgroupWatch, SeesTiersThatComeLater) {
  const TempDir dir;
  PodCgroupWatch watch(dir.path(), "kubepods.slice");
  EXPECT_EQ(watch.cover(), 0u);
  fs::create_directories(dir.path() / "kubepods/besteffort");
  EXPECT_EQ(watch.cover(), 2u);
  EXPECT_EQ(watch.cover(), 2u);
  EXPECT_FALSE(watch.take());
  fs::create_directory(dir.path() / "kubepods/besteffort/pod1");
  EXPECT_TRUE(watch.take());
  EXPECT_FALSE(watch.take());
  fs::create_directory(dir.path() / "kubepods/burstable");
  EXPECT_FALSE(watch.take());
}

TEST(KubeHealth, IsTheAgeOfTheStatusFile) {
  const TempDir dir;
  config::KubernetesConfig config;
  config.run_dir = dir.path();
  const std::time_t now = std::time(nullptr);
  EXPECT_TRUE(health(config, now)) << "no kubelet to ask";
  config.kubelet.url = "https://127.0.0.1:10250";
  EXPECT_FALSE(health(config, now)) << "no query yet";
  std::ofstream(config.status_file()) << "{}";
  EXPECT_TRUE(health(config, now + 30));
  EXPECT_FALSE(health(config, now + 120));
}

struct Trouble {
  const char* name;
  SmallServer::Act act;
  const char* said;
};

TEST_F(FollowKubelet, TroubleLeavesThePodsAsTheyWereAndIsSaid) {
  const std::string half = pods({"a"}).substr(0, 40);
  const Trouble rows[] = {
      {"unauthorized", SmallServer::answer(401, "Unauthorized"), "tokenFile"},
      {"forbidden", SmallServer::answer(403, "Forbidden"), "nodes/pods"},
      {"error", SmallServer::answer(500, "sorry"), "500"},
      {"half", SmallServer::answer(200, half), "truncated"},
      {"garbage", SmallServer::answer(200, "<html>"), "not JSON"},
      {"a status", SmallServer::answer(200, R"({"kind":"Status"})"), "PodList"},
      {"reset", {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", .reset = true}, "GET"},
      {"slow", {.bytes = "", .delay = 1s}, "imed out"},
  };
  start();
  ASSERT_TRUE(wait_for([&] { return has("a") && has("b"); }));
  for (const Trouble& row : rows) {
    const int before = status().value("failedPolls", 0);
    answer(row.act);
    ASSERT_TRUE(wait_for([&] {
      return status().value("failedPolls", 0) > before &&
             status().value("error", "").find(row.said) != std::string::npos;
    })) << row.name
        << ": " << status().dump();
    EXPECT_EQ(status()["lastPollSucceeded"], false) << row.name;
    EXPECT_TRUE(has("a") && has("b")) << row.name;
    answer(SmallServer::answer(200, pods({"a", "b"})));
    ASSERT_TRUE(wait_for([&] { return status().value("lastPollSucceeded", false); })) << row.name;
  }
  EXPECT_EQ(status()["filesWritten"], 2) << "nothing was written twice";
}

TEST_F(FollowKubelet, ItsConfigurationIsWrittenDownOnceItIsAsked) {
  configz_ = SmallServer::answer(200, text_of("tests/fixtures/kube/configz.json"));
  config_.kubernetes.kubelet.configz = true;
  start();
  ASSERT_TRUE(wait_for([&] { return fs::exists(dir_.path() / "kubelet.yaml"); }));
  EXPECT_NE(text_of(dir_.path() / "kubelet.yaml").find("350Mi"), std::string::npos);
}

TEST_F(FollowKubelet, WithoutItsConfigurationThePodsCountAllTheSame) {
  config_.kubernetes.kubelet.configz = true;
  start();
  ASSERT_TRUE(wait_for_failures(1));
  EXPECT_TRUE(has("a"));
  EXPECT_NE(status().value("error", "").find("enableDebuggingHandlers"), std::string::npos)
      << status().dump();
}

TEST_F(FollowKubelet, StopsAtOnceWhateverTheKubeletDoes) {
  config_.kubernetes.kubelet.timeout = 30s;
  answer({.bytes = "", .delay = 20s});
  start();
  ASSERT_TRUE(wait_for([&] { return !kubelet_.requests().empty(); }));
  const auto begun = std::chrono::steady_clock::now();
  half_.request_stop();
  half_.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
}

}  // namespace
}  // namespace headroom::kube
