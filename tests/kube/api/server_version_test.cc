// SPDX-License-Identifier: Apache-2.0
#include "kube/api/server_version.h"

#include <array>

#include <gtest/gtest.h>

namespace headroom::kube {
namespace {

std::optional<ServerVersion> version_in(const char* body, long status = 200) {
  return server_version({.status = status, .body = body});
}

TEST(ServerVersion, IsReadFromTheAnswer) {
  EXPECT_EQ(version_in(R"({"major": "1", "minor": "36", "gitVersion": "v1.36.2"})"),
            (ServerVersion{1, 36}));
  EXPECT_EQ(version_in(R"({"major": "1", "minor": "33+"})"), (ServerVersion{1, 33}));
  EXPECT_EQ(to_string(ServerVersion{1, 20}), "1.20");
}

TEST(ServerVersion, IsUnknownWithoutNumbers) {
  constexpr std::array<const char*, 7> kBodies = {
      "",   R"({"major": "", "minor": ""})",     R"({"major": "1"})",
      "[]", R"({"major": "1", "minor": "x20"})", R"({"major": 1, "minor": 20})",
      "{",
  };
  for (const char* body : kBodies)
    EXPECT_EQ(version_in(body), std::nullopt) << body;
  EXPECT_EQ(version_in(R"({"major": "1", "minor": "19"})", 403), std::nullopt);
}

TEST(ServerVersion, OlderThanTheOldestIsLess) {
  EXPECT_LT((ServerVersion{1, 19}), kOldestServer);
  EXPECT_GE((ServerVersion{1, 20}), kOldestServer);
  EXPECT_GE((ServerVersion{2, 0}), kOldestServer);
}

}  // namespace
}  // namespace headroom::kube
