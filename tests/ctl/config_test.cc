// SPDX-License-Identifier: Apache-2.0
// headroomctl config: the daemon's answer, read back.
#include "ctl/common/commands.h"
#include "daemon/config/running_config.h"

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

TEST(ConfigCommand, ParsesTheDaemonsSettings) {
  const config::ConfigSettings settings{
      {"evictionHard", "memory.available", "\"1Gi\"", "f:3"},
      {"headroom.listen", "", "\"a\"", "default", "\"\"", "f:9"},
      {"headroom.disk.nodefs", "", "null", "default"},
      {"headroom.reclaim.images", "", "[\"/bin/a\",\"b\\u001b\"]", "f:4"}};
  daemon::ActiveSettings in_force;
  in_force.set(settings);
  const auto read = parse_settings(in_force.json());
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->size(), settings.size());
  EXPECT_EQ(config::as_yaml(*read), config::as_yaml(settings));
}

TEST(ConfigCommand, AnotherAnswerIsAnError) {
  EXPECT_FALSE(parse_settings("{}"));
  EXPECT_FALSE(parse_settings("nonsense"));
}

}  // namespace
}  // namespace headroom::ctl
