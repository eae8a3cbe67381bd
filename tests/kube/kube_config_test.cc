// SPDX-License-Identifier: Apache-2.0
// What headroom-kube adopts at SIGHUP.
#include "kube/kube_config.h"

#include "base/log/journal.h"
#include "config/files.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

using namespace test;

struct KubeConfigTest : ::testing::Test {
  TempDir dir;
  config::CommandLine line;
  config::Config running;

  void write(const std::string& headroom) {
    line.config = {dir.write("headroom.yaml", std::string(kHead) + "headroom: " + headroom + "\n")};
  }
  void start(const std::string& headroom) {
    write(headroom);
    auto loaded = load_config(line);
    EXPECT_TRUE(loaded.diagnostics.empty());
    running = std::move(loaded.config);
  }
  // What is logged.
  std::string reload() {
    ::testing::internal::CaptureStderr();
    {
      const headroom::log::Logging logging("info");
      running = reload_config(line, running);
    }
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(KubeConfigTest, KeysThatNeedARestartKeepTheirValues) {
  start("{nodeName: a, kubernetes: {runDirectory: /run/a, kubelet: {period: 7s}}}");
  write("{nodeName: b, listen: \"\", kubernetes: {runDirectory: /run/b, kubelet: {period: 9s}}}");
  const std::string text = reload();
  EXPECT_EQ(running.node_name, "a");
  EXPECT_EQ(running.kubernetes.run_dir, "/run/a");
  EXPECT_EQ(running.kubernetes.kubelet.period, std::chrono::seconds(9));
  EXPECT_NE(text.find("headroom.nodeName: "), std::string::npos) << text;
  EXPECT_NE(text.find("headroom.kubernetes.runDirectory: "), std::string::npos) << text;
  EXPECT_EQ(text.find("headroom.listen"), std::string::npos) << "headroom-kube does not use it";
}

TEST_F(KubeConfigTest, AnErrorLeavesTheConfigurationInForce) {
  start("{kubernetes: {kubelet: {period: 7s}}}");
  write("{kubernetes: {kubelet: {period: soon}}}");
  EXPECT_NE(reload().find("is not reloaded"), std::string::npos);
  EXPECT_EQ(running.kubernetes.kubelet.period, std::chrono::seconds(7));
}

TEST_F(KubeConfigTest, AnOldNameOfAKeyIsAWarning) {
  start("{}");
  write("{disk: {measureEvery: 30s}}");
  EXPECT_NE(reload().find("measurePeriod"), std::string::npos);
}

}  // namespace
}  // namespace headroom::kube
