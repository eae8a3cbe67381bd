// SPDX-License-Identifier: Apache-2.0
// Whose name a browser asks for.
#include "report/page/page_router.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

struct Case {
  const char* host;
  bool ours;
};

TEST(HostCheck, IsAnAddressLocalhostOrAKnownName) {
  for (const Case& each : {Case{"", true},
                           {"127.0.0.1:9750", true},
                           {"192.0.2.7", true},
                           {"[::1]:9750", true},
                           {"[2001:db8::1]", true},
                           {"localhost:8080", true},
                           {"LocalHost", true},
                           {"node-1:9750", true},
                           {"Node-1.example.com.:9750", true},
                           {"node-1.evil.example", false},
                           {"evil.example:9750", false},
                           {"127.0.0.1.evil.example", false},
                           {"localhost.evil.example", false},
                           {"[evil.example]", false},
                           {"[::1", false},
                           {"[::1]evil.example", false},
                           {"127.0.0.1:evil", false},
                           {":9750", false},
                           {"[]", false}})
    EXPECT_EQ(is_allowed_host(each.host, {"node-1", "node-1.example.com"}), each.ours) << each.host;
}

}  // namespace
}  // namespace headroom::report
