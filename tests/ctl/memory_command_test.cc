// SPDX-License-Identifier: Apache-2.0
// headroomctl memory: what headroomd answers, as tables.
#include "ctl/common/commands.h"
#include "report/view/memory_view.h"

#include <string>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

TEST(MemoryCommand, ShowsNodesAndContainers) {
  report::MemoryView view{.mode = "enforce", .policy = "Static"};
  view.nodes[0].group = NodeSet::of(0);
  view.nodes[0].tables["memory"] = {.total = Bytes{4 * kGi},
                                    .system_reserved = Bytes{kGi},
                                    .allocatable = Bytes{3 * kGi},
                                    .reserved = Bytes{2 * kGi},
                                    .free = Bytes{kGi}};
  view.containers.push_back({.pod_namespace = "default",
                             .pod = "web",
                             .uid = "u",
                             .container = "c",
                             .blocks = {{NodeSet::of(0), "memory", Bytes{2 * kGi}}},
                             .runs_on = NodeSet::of(0) | NodeSet::of(1)});
  view.containers.push_back({.pod_namespace = "",
                             .pod = "db",
                             .uid = "v",
                             .container = "d",
                             .refusal = "TopologyAffinityError: no node"});
  const auto text = render_memory(report::memory_json(view), {});
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_EQ(*text,
            "mode enforce  policy Static\n"
            "\n"
            "NUMA  GROUP  RESOURCE  TOTAL  RESERVED  ASSIGNED  FREE\n"
            "0     0      memory    4Gi    1Gi       2Gi       1Gi\n"
            "\n"
            "POD          CONTAINER  RESOURCE  SIZE  ASSIGNED  RUNS ON  \n"
            "default/web  c          memory    2Gi   0         0-1      \n"
            "db           d          -         -     -         -        TopologyAffinityError: no "
            "node\n");
}

TEST(MemoryCommand, AnUnreadableAnswerIsAnError) {
  EXPECT_FALSE(render_memory("[]", {}));
  EXPECT_FALSE(render_memory("{", {}));
}

}  // namespace
}  // namespace headroom::ctl
