// SPDX-License-Identifier: Apache-2.0
// headroomctl waits: which pods are shown, which causes, and shares of the time.
#include "ctl/common/commands.h"

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

PodStatus pod(const char* name, std::optional<CpuWaitsByCause> waits) {
  PodStatus pod;
  pod.name = pod.uid = name;
  pod.pod_namespace = "default";
  pod.cpu_waits = std::move(waits);
  return pod;
}

Status status() {
  Status status;
  status.signals = {{"cpu.pressure", 750'000, 1'000'000}, {"memory.available", 5, 10}};
  status.pods = {pod("web", {{{"quota", 20 * kSecond}, {"node", kSecond}}}),
                 pod("batch", {{{"quota", 0}, {"weight", 90 * kSecond}}}),
                 pod("idle", {{{"quota", 0}, {"node", 0}}}), pod("new", std::nullopt)};
  status.cpu_pairs = {{"default/web", "default/batch", 3 * kSecond},
                      {"default/web", "", kSecond / 2}};
  return status;
}

TEST(WaitsCommand, ShowsTheLongestWaitsFirstAndTheCausesThereAre) {
  EXPECT_EQ(render_waits(status(), nullptr, 0, {}),
            "node contention: cpu 25.0%\n"
            "\n"
            "WAITED FOR CPU   TIME  quota  weight  node\n"
            "default/batch   1m30s      -   1m30s     -\n"
            "default/web       21s    20s       -    1s\n"
            "\n"
            "WAITED FOR CPU  WHILE THIS RAN  RECENTLY\n"
            "default/web     default/batch         3s\n"
            "default/web     (outside pods)     500ms\n");
}

TEST(WaitsCommand, SharesAreOfTheTimeBetweenTwoStatuses) {
  const Status before = status();
  Status now = status();
  (*now.pods[0].cpu_waits)[1].second += 4 * kSecond;
  now.cpu_pairs.clear();
  EXPECT_EQ(render_waits(now, &before, 10, {}),
            "node contention: cpu 25.0%\n"
            "\n"
            "WAITED FOR CPU  OF THE TIME   node\n"
            "default/web           40.0%  40.0%\n");
}

TEST(WaitsCommand, WithoutWaitsAndReadingsItSaysSo) {
  EXPECT_EQ(render_waits(Status{}, nullptr, 0, {}),
            "node contention: unknown\n\nno pod waited for a CPU\n");
}

}  // namespace
}  // namespace headroom::ctl
