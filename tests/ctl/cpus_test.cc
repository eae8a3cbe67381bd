// SPDX-License-Identifier: Apache-2.0
// The map of headroomctl cpus, from what the daemon says.
#include "ctl/cpus.h"

#include "report/cpus_view.h"

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

TEST(Cpus, TheMapHasALineForEachCoreInOneHand) {
  report::CpusView view;
  view.mode = "enforce";
  view.policy = "static";
  view.places = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 1, 1, 1}, {3, 3, 1, 1, 1},
                 {4, 0, 0, 0, 0}, {5, 1, 0, 0, 0}, {6, 2, 1, 1, 1}, {7, 3, 1, 1, 1}};
  view.reserved = cpus("0");
  view.shared = cpus("0,4,7");
  view.offline = cpus("8");
  view.owners = {{"default", "web", "u1", "main", 2, cpus("1,5"), cpus("1,5"), ""},
                 {"default", "db", "u2", "main", 2, cpus("2,6"), cpus("0-7"), ""},
                 {"default", "big", "u3", "main", 9, {}, cpus("0,4,7"), "too many"}};
  const auto text = render_cpus(report::cpus_json(view), {});
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_EQ(*text,
            "mode enforce  policy static  shared 0,4,7  reserved 0  offline 8\n"
            "\n"
            "SOCKET  NUMA  L3  CORE  CPUS  WHOSE\n"
            "0       0     0   0     0     reserved\n"
            "0       0     0   0     4     shared\n"
            "0       0     0   1     1,5   default/web main\n"
            "1       1     1   2     2,6   default/db main\n"
            "1       1     1   3     3     left alone\n"
            "1       1     1   3     7     shared\n"
            "\n"
            "POD          CONTAINER  WANTS  HAS  RUNS ON  \n"
            "default/web  main       2      1,5  1,5      \n"
            "default/db   main       2      2,6  0-7      \n"
            "default/big  main       9      -    0,4,7    too many\n");
}

TEST(Cpus, AnAnswerThatIsNoneIsSaid) {
  EXPECT_FALSE(render_cpus("[]", {}));
  EXPECT_FALSE(render_cpus("{", {}));
}

}  // namespace
}  // namespace headroom::ctl
