// SPDX-License-Identifier: Apache-2.0
// What is derived from the host, whatever its paths are called.
#include "daemon/config/running_config.h"

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

}  // namespace
}  // namespace headroom::daemon
