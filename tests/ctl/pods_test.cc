// SPDX-License-Identifier: Apache-2.0
// headroomctl pods: columns and orders.
#include "ctl/common/commands.h"

#include <sstream>

#include <gtest/gtest.h>

namespace headroom::ctl {
namespace {

PodStatus pod(const char* name, std::int64_t priority, std::optional<std::int64_t> working_set,
              std::optional<std::int64_t> over) {
  PodStatus pod;
  pod.name = pod.uid = name;
  pod.pod_namespace = "default";
  pod.qos = "Burstable";
  pod.priority = priority;
  pod.working_set = working_set;
  pod.over = over;
  return pod;
}

Status three() {
  Status status;
  status.pods = {pod("b", 5, 100, -5), pod("a", 7, 300, 20),
                 pod("c", 0, std::nullopt, std::nullopt)};
  status.pods[0].stalls = {{"limit", {.ns = 3'000'000'000, .count = 1, .p99_ns = {}}},
                           {"global", {.ns = 4'000'000'000, .count = 1, .p99_ns = {}}},
                           {"high", {}}};
  status.pods[2].stalls.emplace();
  status.pods[1].throttled = 2'000'000'000;
  status.pods[2].disk = 4096;
  return status;
}

struct Case {
  PodOrder order;
  const char* names;
};
const Case kCases[] = {
    {PodOrder::kName, "a b c "},       {PodOrder::kOver, "a b c "},
    {PodOrder::kWorkingSet, "a b c "}, {PodOrder::kPriority, "c b a "},
    {PodOrder::kStalls, "b c a "},     {PodOrder::kThrottled, "a b c "},
    {PodOrder::kDisk, "c a b "},
};

TEST(Pods, InTheOrderAskedForTheUnknownLast) {
  for (const Case& c : kCases) {
    std::istringstream lines(render_pods(three(), c.order, {}));
    std::string names, line;
    std::getline(lines, line);
    while (std::getline(lines, line))
      names += line.substr(0, 1) + " ";
    EXPECT_EQ(names, c.names) << static_cast<int>(c.order);
  }
}

TEST(Pods, WaitsAreListedByCauseLongestFirst) {
  const std::string text = render_pods(three(), PodOrder::kName, {});
  EXPECT_NE(text.find("global 4s limit 3s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown\n"), std::string::npos) << "those of the second pod: " << text;
}

TEST(Pods, IgnoredFieldsAreListedBelowTheTable) {
  Status status = three();
  EXPECT_EQ(render_pods(status, PodOrder::kName, {}).find("ignored"), std::string::npos);
  status.pods[0].ignored = {"spec.tolerations[0].operator: expected Equal, found \"New\""};
  const std::string text = render_pods(status, PodOrder::kName, {});
  EXPECT_TRUE(
      text.ends_with("default/b: ignored spec.tolerations[0].operator: expected Equal, "
                     "found \"New\"\n"))
      << text;
}

TEST(Pods, NoPodsIsReported) {
  EXPECT_EQ(render_pods({}, PodOrder::kName, {}), "no pods\n");
}

}  // namespace
}  // namespace headroom::ctl
