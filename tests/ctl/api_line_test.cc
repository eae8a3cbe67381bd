// SPDX-License-Identifier: Apache-2.0
// What headroomctl status says of the API server.
#include "ctl/status/kubernetes_lines.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

struct Row {
  const char* name;
  const char* kubernetes;
  const char* line;
};

TEST(ApiLine, Says) {
  const Row rows[] = {
      {"none", "null", ""},
      {"the other half alone", R"({"kubelet":{}})", ""},
      {"good", R"({"api":{"server":"https://a","reported":3,"pending":0}})",
       "API:      https://a  3 evictions reported\n"},
      {"an outage",
       R"({"api":{"server":"https://a","reported":3,"pending":2,"oldestPendingSince":"T","error":"503"}})",
       "API:      https://a  3 evictions reported, 2 waiting since T; 503\n"},
      {"the log cannot be read", R"({"api":{"server":"https://a","auditLogError":"no"}})",
       "API:      https://a  ? evictions reported; no\n"},
      {"no address", R"({"api":{"error":"it is not known where"}})",
       "API:      it is not known where\n"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(api_line(R"({"kubernetes":)" + std::string(row.kubernetes) + "}"), row.line)
        << row.name;
  EXPECT_EQ(api_line(""), "");
}

TEST(SchedulingLine, Says) {
  const Row rows[] = {
      {"off", R"({"api":{}})", ""},
      {"calm",
       R"({"scheduling":{"advice":{"HeadroomCPUContention":false,"HeadroomMemoryContention":null}}})",
       "scheduler: no advice against this node\n"},
      {"busy",
       R"({"scheduling":{"advice":{"HeadroomCPUContention":true,"HeadroomShortageExpected":true}}})",
       "scheduler: advised against: CPU contention, a shortage is expected\n"},
      {"refused", R"({"scheduling":{"advice":{},"error":"403 Forbidden"}})",
       "scheduler: no advice against this node; 403 Forbidden\n"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(scheduling_line(R"({"kubernetes":)" + std::string(row.kubernetes) + "}"), row.line)
        << row.name;
  EXPECT_EQ(scheduling_line(""), "");
}

TEST(MetricsLine, Says) {
  const Row rows[] = {
      {"not served", R"({"api":{}})", ""},
      {"served", R"({"metrics":{"listen":"0.0.0.0:9751","certificate":"self-signed"}})",
       "metrics:  https://0.0.0.0:9751/metrics  certificate: self-signed\n"},
      {"not any more", R"({"metrics":{"listen":"[::]:9751","certificate":"/c","error":"open /c"}})",
       "metrics:  https://[::]:9751/metrics  certificate: /c; open /c\n"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(metrics_line(R"({"kubernetes":)" + std::string(row.kubernetes) + "}"), row.line)
        << row.name;
  EXPECT_EQ(metrics_line(""), "");
}

}  // namespace
}  // namespace headroom::ctl
