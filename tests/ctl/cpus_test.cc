// SPDX-License-Identifier: Apache-2.0
// The map of headroomctl cpus, from what the daemon says.
#include "ctl/common/commands.h"
#include "report/view/cpus_view.h"

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

CpuSet cpus(const char* list) {
  return CpuSet::parse(list).value();
}

TEST(Cpus, TheTableHasALineForEachCoreAndOwner) {
  report::CpusView view;
  view.mode = "enforce";
  view.policy = "static";
  view.places = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 1, 1, 1}, {3, 3, 1, 1, 1},
                 {4, 0, 0, 0, 0}, {5, 1, 0, 0, 0}, {6, 2, 1, 1, 1}, {7, 3, 1, 1, 1}};
  view.reserved = cpus("0");
  view.shared = cpus("0,4,7");
  view.offline = cpus("8");
  view.containers = {{"default", "web", "u1", "main", 2, cpus("1,5"), cpus("1,5"), ""},
                     {"default", "db", "u2", "main", 2, cpus("2,6"), cpus("0-7"), "", "isolated"},
                     {"default", "big", "u3", "main", 9, {}, cpus("0,4,7"), "too many"}};
  view.pool = SharedPool{{2000}, {9250}};
  view.pool_unknown = 2;
  view.pool_limit_enforced = true;
  const auto text = render_cpus(report::cpus_json(view), {});
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_EQ(*text,
            "mode enforce  policy static  shared 0,4,7  reserved 0  offline 8\n"
            "shared pool without reservations: CPU 2, requested 9250m, and 2 more pods without a "
            "manifest\n"
            "error: the shared pool has fewer CPUs than its pods requested\n"
            "\n"
            "SOCKET  NUMA  L3  CORE  CPUS  OWNER\n"
            "0       0     0   0     0     reserved\n"
            "0       0     0   0     4     shared\n"
            "0       0     0   1     1,5   default/web main\n"
            "1       1     1   2     2,6   default/db main\n"
            "1       1     1   3     3     left alone\n"
            "1       1     1   3     7     shared\n"
            "\n"
            "POD          CONTAINER  REQUESTED  ASSIGNED  RUNS ON  \n"
            "default/web  main       2          1,5       1,5      \n"
            "default/db   main       2          2,6       0-7      isolated\n"
            "default/big  main       9          -         0,4,7    too many\n");
}

TEST(Cpus, ContainersThatShareTheirPodsPoolAreMarked) {
  report::CpusView view;
  view.mode = "enforce";
  view.policy = "static";
  view.places = {{0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}, {2, 2, 0, 0, 0}};
  view.shared = cpus("0");
  view.containers = {{"default", "web", "u1", "own", 1, cpus("1"), cpus("1")},
                     {"default", "web", "u1", "a", 0, cpus("2"), cpus("2")},
                     {"default", "web", "u1", "b", 0, cpus("2"), cpus("2")}};
  view.containers[1].shares_in_pod = view.containers[2].shares_in_pod = true;
  const std::string text = render_cpus(report::cpus_json(view), {}).value();
  EXPECT_EQ(text.substr(text.find("SOCKET")),
            "SOCKET  NUMA  L3  CORE  CPUS  OWNER\n"
            "0       0     0   0     0     shared\n"
            "0       0     0   1     1     default/web own\n"
            "0       0     0   2     2     default/web a, default/web b\n"
            "\n"
            "POD          CONTAINER  REQUESTED  ASSIGNED  RUNS ON  \n"
            "default/web  own        1          1         1        \n"
            "default/web  a          0          2         2        shared in the pod\n"
            "default/web  b          0          2         2        shared in the pod\n");
}

TEST(Cpus, ThePoolIsShownOnlyWhereKnown) {
  report::CpusView view;
  view.mode = "enforce";
  view.policy = "static";
  view.shared = cpus("0-3");
  const auto heading = [&] {
    const std::string text = render_cpus(report::cpus_json(view), {}).value();
    return text.substr(0, text.find("\n\n"));
  };
  EXPECT_EQ(heading(), "mode enforce  policy static  shared 0-3  reserved -");
  view.pool = SharedPool{{3900}, {1000}};
  EXPECT_EQ(heading(),
            "mode enforce  policy static  shared 0-3  reserved -\n"
            "shared pool without reservations: CPU 3900m, requested 1, not enforced");
}

TEST(Cpus, ARepackListsTheMovedContainers) {
  report::RepackView view{.dry_run = true,
                          .moved_cpus = 4,
                          .before = {1, {3, 3, 3, 4}, 0, 2},
                          .after = {0, {2, 2, 2, 3}, 0, 0}};
  view.containers = {
      {"default", "web", "u1", "main", cpus("1,3"), cpus("1,5"), {}, {2, 2, 2, 2}, {1, 1, 1, 1}},
      {"default", "db", "u2", "main", {}, cpus("2-3,6"), {}, {}, {1, 1, 1, 2}},
      {"", "u3", "u3", "main", cpus("2"), cpus("4"), cpus("2"), {1, 1, 1, 1}, {1, 1, 1, 1}}};
  const auto text = render_repacking(report::repack_json(view), {});
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_EQ(
      *text,
      "4 CPUs would be moved\n"
      "\n"
      "POD          CONTAINER  FROM  TO     \n"
      "default/web  main       1,3   1,5    NUMA nodes 2 -> 1, sockets 2 -> 1, caches 2 -> 1, "
      "cores 2 -> 1\n"
      "default/db   main       -     2-3,6  was refused\n"
      "u3           main       2     4      still on 2\n"
      "\n"
      "containers with fewer CPUs than requested  1 -> 0\n"
      "NUMA nodes that containers span, added up  3 -> 2\n"
      "sockets                                    3 -> 2\n"
      "caches                                     3 -> 2\n"
      "cores                                      4 -> 3\n"
      "CPUs free on the freest NUMA node          2 -> 0\n");
  view.containers.clear();
  EXPECT_EQ(*render_repacking(report::repack_json(view), {}),
            "nothing to gain: no container is moved\n");
}

TEST(Cpus, AnInvalidAnswerIsAnError) {
  EXPECT_FALSE(render_repacking("{}", {}));
  EXPECT_FALSE(render_cpus("[]", {}));
  EXPECT_FALSE(render_cpus("{", {}));
}

}  // namespace
}  // namespace headroom::ctl
