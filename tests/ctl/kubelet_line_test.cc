// SPDX-License-Identifier: Apache-2.0
// What headroomctl status says of the kubelet.
#include "config/rows.h"
#include "ctl/status/kubernetes_lines.h"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

struct Row {
  const char* name;
  const char* kubernetes;
  const char* line;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class KubeletLine : public testing::TestWithParam<Row> {};

TEST_P(KubeletLine, Says) {
  EXPECT_EQ(kubelet_line(R"({"kubernetes":)" + std::string(GetParam().kubernetes) + "}", 1000),
            GetParam().line);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, KubeletLine,
    testing::Values(
        Row{"none", "null", ""}, Row{"the_other_half_alone", R"({"api":{}})", ""},
        Row{"good",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":true,"pods":3,"podsAt":997}})",
            "kubelet:  https://h  3 pods, 3s ago\n"},
        Row{"error",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":false,"error":"401","pods":3,"podsAt":940}})",
            "kubelet:  https://h  3 pods, 1m ago; 401\n"},
        Row{"no_time_that_fits",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":true,"pods":3,"podsAt":1e300}})",
            "kubelet:  https://h  no answer yet\n"},
        Row{"never",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":false,"error":"no","podsAt":0}})",
            "kubelet:  https://h  no answer yet; no\n"},
        Row{"no_poll_since",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":true,"pods":3,"podsAt":900,"periodSeconds":10}})",
            "kubelet:  https://h  3 pods, 1m40s ago; no query since: is headroom-kube running?\n"},
        Row{"seldom_asked",
            R"({"kubelet":{"url":"https://h","lastPollSucceeded":true,"pods":3,"podsAt":900,"periodSeconds":60}})",
            "kubelet:  https://h  3 pods, 1m40s ago\n"}),
    test::RowName());

TEST(KubeletLineOf, NoDocumentIsNoLine) {
  EXPECT_EQ(kubelet_line("", 0), "");
  EXPECT_EQ(kubelet_line("[]", 0), "");
}

}  // namespace
}  // namespace headroom::ctl
