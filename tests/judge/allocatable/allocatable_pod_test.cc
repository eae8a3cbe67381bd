// SPDX-License-Identifier: Apache-2.0
// Pod and container cgroups beyond what the vectors hold: containers, pids, huge pages, memory QoS,
// swap, exclusive CPUs.
#include "judge/allocatable/pod_sizing.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Bounds = Limit<Bytes>;
using Reservation = MemoryQos::Reservation;

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

ResourceList list(const char* cpu, const char* memory) {
  ResourceList made;
  if (cpu) made["cpu"] = q(cpu);
  if (memory) made["memory"] = q(memory);
  return made;
}

Container container(ResourceList requests, ResourceList limits) {
  return {.name = "c", .requests = std::move(requests), .limits = std::move(limits)};
}

Pod pod(std::vector<Container> containers) {
  Pod made;
  made.uid = "1";
  made.containers = std::move(containers);
  return made;
}

Pod guaranteed(const char* cpu, const char* memory) {
  return pod({container(list(cpu, memory), list(cpu, memory))});
}

NodeMemory node() {
  return {.capacity = 16_GiB, .swap = 4_GiB, .allocatable = 10_GiB, .huge_page_sizes = {}};
}

CgroupValues of_first(const Pod& each, const PodSizing& sizing, Cpus cpus = Cpus::kShared) {
  return container_cgroup(each, each.containers.front(), sizing, node(), cpus);
}

TEST(PodCgroup, OneUnlimitedContainerLeavesThePodUnlimited) {
  Pod each = pod({container(list("1", "1Gi"), list("1", "1Gi"))});
  Container sidecar = container({}, list("1", "2Gi"));
  sidecar.sidecar = true;
  each.init_containers = {sidecar, container({}, {})};  // upstream takes the second for limited
  const CgroupValues values = pod_cgroup(each, {}, node());
  EXPECT_FALSE(values.cpu_max);
  EXPECT_FALSE(values.memory_max);

  each.init_containers.pop_back();
  const CgroupValues total_limits = pod_cgroup(each, {}, node());
  EXPECT_EQ(total_limits.cpu_max, (CpuMax{.quota = Microseconds(200'000)}));
  EXPECT_EQ(total_limits.memory_max, Bounds(3_GiB));
}

TEST(PodCgroup, APodLevelLimitIsALimit) {
  Pod each = pod({container({}, {}), container({}, {})});
  each.pod_level = container(list("1", "1Gi"), list("2", nullptr));
  const CgroupValues values = pod_cgroup(each, {}, node());
  EXPECT_EQ(values.cpu_max, (CpuMax{.quota = Microseconds(200'000)}));
  EXPECT_FALSE(values.memory_max);
}

// A class declared beside a specification that does not bear it out must not limit a pod to zero.
TEST(PodCgroup, AMissingLimitIsNeverAZeroOne) {
  Pod each = pod({container({}, {})});
  for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    each.declared_qos = qos;
    const CgroupValues values = pod_cgroup(each, {}, node());
    EXPECT_FALSE(values.memory_max);
    EXPECT_FALSE(values.cpu_max);
  }
}

TEST(PodCgroup, BestEffortHasTheLowestWeightWhateverItsOverhead) {
  Pod each = pod({container({}, {})});
  each.overhead = list("4", "1Gi");
  EXPECT_EQ(pod_cgroup(each, {}, node()).cpu_weight, CpuWeight{1});
}

TEST(PodCgroup, PidsOnlyWhereALimitIsSet) {
  EXPECT_FALSE(pod_cgroup(guaranteed("1", "1Gi"), {}, node()).pids_max);
  EXPECT_EQ(pod_cgroup(guaranteed("1", "1Gi"), {.pids_limit = Tasks{500}}, node()).pids_max,
            Limit<Tasks>(Tasks{500}));
}

TEST(PodCgroup, ExclusiveCpusAreNotThrottled) {
  const Pod each = guaranteed("2", "1Gi");
  EXPECT_EQ(pod_cgroup(each, {}, node(), Cpus::kExclusive).cpu_max, CpuMax{});
  EXPECT_EQ(of_first(each, {}, Cpus::kExclusive).cpu_max, CpuMax{});
  EXPECT_EQ(of_first(each, {}).cpu_max, (CpuMax{.quota = Microseconds(200'000)}));
}

TEST(PodCgroup, AQuotaHasThePeriodThatWasAskedFor) {
  const PodSizing sizing{.cpu_period = Microseconds(10'000)};
  EXPECT_EQ(pod_cgroup(guaranteed("500m", "1Gi"), sizing, node()).cpu_max,
            (CpuMax{.quota = Microseconds(5'000), .period = Microseconds(10'000)}));
}

TEST(HugePages, OfOtherSizesAreLimitedToZero) {
  ResourceList pages = list("1", "1Gi");
  pages["hugepages-2Mi"] = q("64Mi");
  const Pod each = pod({container(pages, pages)});
  NodeMemory offering = node();
  offering.huge_page_sizes = {2_MiB, 1_GiB};
  const std::map<Bytes, Bounds> expected{{2_MiB, 64_MiB}, {1_GiB, 0_B}};
  EXPECT_EQ(pod_cgroup(each, {}, offering).hugetlb_max, expected);
  EXPECT_EQ(container_cgroup(each, each.containers.front(), {}, offering).hugetlb_max, expected);
}

TEST(HugePages, InvalidSizesAreIgnored) {
  ResourceList odd = list("1", "1Gi");
  for (const char* const name : {"hugepages-", "hugepages-x", "hugepages-0", "hugepages--2Mi"})
    odd[name] = q("64Mi");
  EXPECT_TRUE(pod_cgroup(pod({container(odd, odd)}), {}, node()).hugetlb_max.empty());
}

TEST(PodCgroup, TheLowerOfTheNodesAndThePodsOwnPidLimitCounts) {
  struct Case {
    const char* says;
    std::optional<Tasks> of_node;
    const char* of_pod;
    std::optional<Limit<Tasks>> pids_max;
  };
  for (const Case& c :
       {Case{"none", {}, nullptr, {}}, Case{"node", Tasks{100}, nullptr, Tasks{100}},
        Case{"pod", {}, "50", Tasks{50}}, Case{"pod_is_lower", Tasks{100}, "50", Tasks{50}},
        Case{"node_is_lower", Tasks{100}, "1k", Tasks{100}},
        Case{"zero_is_none", Tasks{100}, "0", Tasks{100}}}) {
    Pod each = pod({container({}, {})});
    if (c.of_pod) each.pod_level = container({}, {{"pid", q(c.of_pod)}});
    EXPECT_EQ(pod_cgroup(each, {.pids_limit = c.of_node}, node()).pids_max, c.pids_max) << c.says;
  }
}

TEST(ContainerCgroup, OfRequestsAndLimits) {
  struct Case {
    const char* says;
    Container container;
    std::uint32_t weight;
    std::optional<std::int64_t> quota;
    std::optional<Bounds> memory;
  };
  for (const Case& c :
       {Case{"both", container(list("1", "1Gi"), list("2", "2Gi")), 39, 200'000, 2_GiB},
        Case{"a_limit_is_a_request", container({}, list("2", nullptr)), 79, 200'000, {}},
        Case{"but_not_beside_a_zero_one",
             container(list("0", nullptr), list("2", nullptr)),
             1,
             200'000,
             {}},
        Case{"nothing", container({}, {}), 1, {}, {}},
        Case{"zero_limits_are_none", container({}, list("0", "0")), 1, {}, {}}}) {
    const CgroupValues values = of_first(pod({c.container}), {});
    EXPECT_EQ(values.cpu_weight, CpuWeight{c.weight}) << c.says;
    EXPECT_EQ(values.cpu_max.has_value(), c.quota.has_value()) << c.says;
    if (c.quota) {
      EXPECT_EQ(values.cpu_max->quota, Microseconds(*c.quota)) << c.says;
    }
    EXPECT_EQ(values.memory_max, c.memory) << c.says;
  }
}

TEST(ContainerCgroup, WithoutALimitHasThePodsLimit) {
  Pod each = pod({container(list("1", "1Gi"), {})});
  each.pod_level = container(list("1", "1Gi"), list("4", "8Gi"));
  const CgroupValues values = of_first(each, {});
  EXPECT_EQ(values.memory_max, Bounds(8_GiB));
  EXPECT_EQ(values.cpu_max, (CpuMax{.quota = Microseconds(400'000)}));
}

TEST(ContainerCgroup, HasOomGroupByDefault) {
  EXPECT_EQ(of_first(guaranteed("1", "1Gi"), {}).memory_oom_group, true);
  EXPECT_FALSE(of_first(guaranteed("1", "1Gi"), {.oom_kills_group = false}).memory_oom_group);
}

TEST(MemoryQos, ProtectsRequestsByPolicyAndClass) {
  struct Case {
    const char* says;
    Reservation reservation;
    QosClass qos;
    std::optional<Bounds> min;
    std::optional<Bounds> low;
  };
  for (const Case& c :
       {Case{"unmanaged", Reservation::kUnmanaged, QosClass::kGuaranteed, {}, {}},
        Case{"tiered_guaranteed", Reservation::kTiered, QosClass::kGuaranteed, 1_GiB, {}},
        Case{"tiered_burstable", Reservation::kTiered, QosClass::kBurstable, {}, 1_GiB}}) {
    Pod each = guaranteed("1", "1Gi");
    each.declared_qos = c.qos;
    const PodSizing sizing{.memory_qos = {.reservation = c.reservation, .throttling_factor = {}}};
    for (const CgroupValues& values : {pod_cgroup(each, sizing, node()), of_first(each, sizing)}) {
      EXPECT_EQ(values.memory_min, c.min) << c.says;
      EXPECT_EQ(values.memory_low, c.low) << c.says;
      EXPECT_FALSE(values.memory_high) << c.says;
    }
  }
}

TEST(MemoryQos, APodWithoutARequestIsNotProtected) {
  const PodSizing sizing{
      .memory_qos = {.reservation = Reservation::kTiered, .throttling_factor = {}}};
  const Pod each = pod({container({}, {})});
  EXPECT_FALSE(pod_cgroup(each, sizing, node()).memory_low);
  EXPECT_EQ(of_first(each, sizing).memory_low, Bounds(0_B));
  EXPECT_EQ(of_first(each, sizing).memory_min, Bounds(0_B));
}

TEST(MemoryQos, NoneResetsContainersAndLeavesPodsAlone) {
  const PodSizing sizing{
      .memory_qos = {.reservation = Reservation::kNone, .throttling_factor = {}}};
  const Pod each = guaranteed("1", "1Gi");
  EXPECT_EQ(of_first(each, sizing).memory_min, Bounds(0_B));
  EXPECT_EQ(of_first(each, sizing).memory_low, Bounds(0_B));
  EXPECT_FALSE(pod_cgroup(each, sizing, node()).memory_min);
}

TEST(MemoryQos, ThrottlesBetweenRequestAndLimit) {
  struct Case {
    const char* says;
    const char* request;
    const char* limit;
    double factor;
    std::optional<Bounds> high;
  };
  for (const Case& c : {Case{"nine_tenths_of_the_way", "1000Mi", "2000Mi", 0.9, 1900_MiB},
                        Case{"in_whole_pages", "1000000", "2000000", 0.9, Bytes{1'896'448}},
                        Case{"request_is_limit", "1Gi", "1Gi", 0.9, {}},
                        Case{"without_a_limit_of_allocatable", "1Gi", nullptr, 0.5, 5632_MiB},
                        Case{"neither_request_nor_limit", nullptr, nullptr, 0.9, {}},
                        Case{"at_the_limit", "1Gi", "2Gi", 1.0, 2_GiB},
                        Case{"not_above_the_request", "1Gi", "1073745919", 0.9, {}},
                        Case{"a_request_beyond_allocatable", "12Gi", nullptr, 0.9, {}}}) {
    const PodSizing sizing{.memory_qos = {.throttling_factor = c.factor}};
    const Pod each = pod({container(list(nullptr, c.request), list(nullptr, c.limit))});
    EXPECT_EQ(of_first(each, sizing).memory_high, c.high) << c.says;
    EXPECT_FALSE(pod_cgroup(each, sizing, node()).memory_high) << c.says;
  }
}

TEST(MemoryQos, ThrottlesInPagesOfTheKernel) {
  const PodSizing sizing{.memory_qos = {.throttling_factor = 0.9}};
  const Pod each = pod({container(list(nullptr, "1000000"), list(nullptr, "2000000"))});
  for (const Bytes page : {4_KiB, 16_KiB, 64_KiB}) {
    NodeMemory paged = node();
    paged.page = page;
    const auto high = container_cgroup(each, each.containers.front(), sizing, paged).memory_high;
    EXPECT_EQ(high, Bounds(Bytes{1'900'000 / page.count * page.count})) << page.count;
  }
}

TEST(Swap, IsSharedByRequest) {
  struct Case {
    const char* says;
    const char* request;
    const char* limit;
    std::optional<QosClass> declared;
    std::int32_t priority;
    Bytes share;
  };
  constexpr std::int32_t kCritical = 2'000'000'000;
  for (const Case& c :
       {Case{"a_quarter_of_memory_is_a_quarter_of_swap", "4Gi", nullptr, {}, 0, 1_GiB},
        Case{"rounded_down", "5Gi", "6Gi", {}, 0, Bytes{1'342'177'280}},
        Case{"no_request", nullptr, "1Gi", QosClass::kBurstable, 0, 0_B},
        Case{"nothing_named", nullptr, nullptr, QosClass::kBurstable, 0, 0_B},
        Case{"request_is_limit", "1Gi", "1Gi", QosClass::kBurstable, 0, 0_B},
        Case{"guaranteed", "1Gi", "2Gi", QosClass::kGuaranteed, 0, 0_B},
        Case{"besteffort", "1Gi", "2Gi", QosClass::kBestEffort, 0, 0_B},
        Case{"critical", "1Gi", "2Gi", {}, kCritical, 0_B},
        Case{"more_than_the_machine_has", "17Gi", nullptr, {}, 0, 0_B}}) {
    Pod each = pod({container(list(nullptr, c.request), list(nullptr, c.limit))});
    each.declared_qos = c.declared;
    each.priority = c.priority;
    EXPECT_EQ(swap_share(each, each.containers.front(), node()), c.share) << c.says;
    EXPECT_EQ(of_first(each, {.swap = SwapBehavior::kLimitedSwap}).memory_swap_max, Bounds(c.share))
        << c.says;
    EXPECT_EQ(of_first(each, {}).memory_swap_max, Bounds(0_B)) << c.says;
    EXPECT_FALSE(of_first(each, {.swap = std::nullopt}).memory_swap_max) << c.says;
  }
}

// Upstream's own three.
TEST(Swap, AgreesWithTheKubelet) {
  struct Case {
    Bytes request, memory, swap, share;
  };
  for (const Case& c : {Case{1_GiB, 80_GiB, 4_GiB, Bytes{53'687'091}},
                        Case{2_GiB, 40_GiB, 2_GiB, Bytes{107'374'182}},
                        Case{5_GiB, 150_GiB, 40_GiB, Bytes{1'431'655'765}}}) {
    const Pod each = pod({container({{"memory", Quantity::of(c.request.count)}}, {})});
    const NodeMemory big{
        .capacity = c.memory, .swap = c.swap, .allocatable = {}, .huge_page_sizes = {}};
    EXPECT_EQ(swap_share(each, each.containers.front(), big), c.share);
  }
}

TEST(Swap, NeverExceedsTheSwapOfTheNode) {
  Bytes shared{0};
  for (const char* const request : {"1", "333Mi", "7777777777", "1Gi", "5Gi"}) {
    const Pod each = pod({container(list(nullptr, request), {})});
    shared += swap_share(each, each.containers.front(), node());
  }
  EXPECT_LE(shared, node().swap);
}

}  // namespace
}  // namespace headroom
