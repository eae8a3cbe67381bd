// SPDX-License-Identifier: Apache-2.0
// Which directories of manifests the daemon reads, in their order.
#include "daemon/sources/node_sources.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

std::vector<std::string> directories(const config::Config& config) {
  std::vector<std::string> paths;
  for (const observe::ManifestSource& place : manifest_sources(config))
    paths.push_back(place.directory.string());
  return paths;
}

TEST(ManifestSourcesTest, AreTheOperatorsDirectoryAndThatOfHeadroomctlRun) {
  config::Config config;
  EXPECT_EQ(directories(config),
            (std::vector<std::string>{"/etc/headroom/manifests", "/run/headroom/manifests"}));
  config.state_dir = "/srv/state";
  EXPECT_EQ(directories(config),
            (std::vector<std::string>{"/etc/headroom/manifests", "/srv/state/manifests"}));
}

}  // namespace
}  // namespace headroom::daemon
