// SPDX-License-Identifier: Apache-2.0
// What is derived from the host, whatever its paths are called.
#include "config/temp_dir.h"
#include "daemon/config/running_config.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

TEST(DerivedConfig, AMountPointThatIsNotUtf8IsAValue) {
  config::Config config;
  config.settings = {
      {.path = "headroom.disk.imagefs", .entry = "", .value = "null", .origin = "default"}};
  const config::Config completed = complete_config(
      config, 1, {.nodefs = "/", .imagefs = "/images\xff", .containerfs = {}, .images = {}});
  EXPECT_EQ(nlohmann::json::parse(completed.settings.front().value), "/images\xef\xbf\xbd");
  EXPECT_EQ(completed.settings.front().origin, "found");
}

// The rate of one CPU, whatever it is here, times ten thousand is more than one socket carries.
class OnlineCpus : public testing::Test {
 protected:
  OnlineCpus() {
    std::filesystem::create_directories(dir_.path() / "devices/system/cpu");
    set_online("0-9999");
    config_.state_dir = dir_.path() / "state";
    config_.settings = {
        {.path = "headroom.fastestFill", .entry = "", .value = "null", .origin = "default"}};
  }
  void set_online(const char* cpus) const {
    std::ofstream(dir_.path() / "devices/system/cpu/online") << cpus << "\n";
  }
  static std::int64_t setting_of(const RunningConfig& running) {
    const auto settings = nlohmann::json::parse(running.settings().json());
    return settings.at("settings").at(0).at("value");
  }

  test::TempDir dir_;
  config::Config config_;
};

constexpr std::int64_t kSocket = 614'400'000'000;

TEST_F(OnlineCpus, FastestFillFollowsThem) {
  RunningConfig running(config_, dir_.path(), std::nullopt);
  set_online("0");
  running.adopt_online_cpus(dir_.path());
  EXPECT_LT(running.policy().fastest_fill, kSocket);
  set_online("0-9999");
  EXPECT_TRUE(running.adopt_online_cpus(dir_.path()));
  EXPECT_EQ(running.policy().fastest_fill, kSocket);
  EXPECT_EQ(setting_of(running), kSocket);
  EXPECT_FALSE(running.adopt_online_cpus(dir_.path())) << "nothing has changed since";
}

TEST_F(OnlineCpus, WhatIsConfiguredStays) {
  config_.fastest_fill_configured = true;
  config_.policy.fastest_fill = std::int64_t{1} << 30;
  RunningConfig running(config_, dir_.path(), std::nullopt);
  EXPECT_FALSE(running.adopt_online_cpus(dir_.path()));
  EXPECT_EQ(running.policy().fastest_fill, std::int64_t{1} << 30);
}

}  // namespace
}  // namespace headroom::daemon
