// SPDX-License-Identifier: Apache-2.0
// The tree of a node: which cgroups there are, and what each of their files should hold.
#include "judge/allocatable/node_cgroups.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Files = std::map<std::string, std::string>;
using Reservation = MemoryQos::Reservation;
using Role = NodeCgroup::Role;
using Tree = std::map<std::string, Files>;

Quantity q(const char* text) {
  return *Quantity::parse(text);
}

Amounts capacity() {
  return {.cpu = MilliCpu{8000},
          .memory = 16_GiB,
          .ephemeral_storage = 100_GiB,
          .pids = Tasks{32'768},
          .huge_pages = {{2_MiB, 1_GiB}, {1_GiB, 0_B}}};
}

// 2 CPUs, 4 GiB and 2768 tasks are reserved in all.
AllocatableConfig value(std::vector<std::string> enforce) {
  AllocatableConfig all;
  all.enforce = std::move(enforce);
  all.kube_reserved = {{"cpu", "1"}, {"memory", "3Gi"}, {"pid", "1768"}};
  all.system_reserved = {{"cpu", "1"}, {"memory", "1Gi"}, {"pid", "1000"}};
  all.kube_reserved_cgroup = "/podruntime.slice";
  all.system_reserved_cgroup = "/system.slice";
  return all;
}

std::vector<NodeCgroup> cgroups(const AllocatableConfig& all, const PodSizing& sizing = {},
                                const QosTierSums& sums = {}) {
  const auto policy = allocatable_policy(all);
  if (!policy) {
    ADD_FAILURE() << policy.error().front().what;
    return {};
  }
  const auto node = node_allocatable(capacity(), *policy, {});
  if (!node) {
    ADD_FAILURE() << invalid_node_allocatable(node.error());
    return {};
  }
  return node_cgroups(*policy, capacity(), *node, sizing, sums);
}

Tree tree(const std::vector<NodeCgroup>& all) {
  Tree files;
  for (const NodeCgroup& each : all)
    for (const CgroupSetting& setting : cgroup_settings(each.values))
      files[each.path][setting.file] = setting.value;
  return files;
}

CgroupValues values_of(const std::vector<NodeCgroup>& all, Role role) {
  for (const NodeCgroup& each : all)
    if (each.role == role) return each.values;
  ADD_FAILURE() << "no " << name(role);
  return {};
}

constexpr const char* kPods = "/kubepods.slice";
constexpr const char* kBurstable = "/kubepods.slice/kubepods-burstable.slice";
constexpr const char* kBestEffort = "/kubepods.slice/kubepods-besteffort.slice";
const Files kTier{{"cpu.weight", "1"}, {"hugetlb.2MB.max", "max"}, {"hugetlb.1GB.max", "max"}};

TEST(NodeTree, WithPodsEnforced) {
  EXPECT_EQ(tree(cgroups(value({"pods"}))), (Tree{{kPods,
                                                   {{"cpu.weight", "235"},  // 6 CPUs
                                                    {"memory.max", "12884901888"},
                                                    {"pids.max", "30000"},
                                                    {"hugetlb.2MB.max", "1073741824"},
                                                    {"hugetlb.1GB.max", "0"}}},
                                                  {kBurstable, kTier},
                                                  {kBestEffort, kTier}}));
}

TEST(NodeTree, WithNothingEnforcedPodsHaveTheCapacity) {
  EXPECT_EQ(tree(cgroups(value({"none"}))).at(kPods), (Files{{"cpu.weight", "313"},  // 8 CPUs
                                                             {"memory.max", "17179869184"},
                                                             {"pids.max", "32768"},
                                                             {"hugetlb.2MB.max", "1073741824"},
                                                             {"hugetlb.1GB.max", "0"}}));
}

TEST(NodeTree, ReservesAreWrittenWhereTheyAreEnforced) {
  const Tree all = tree(cgroups(value({"pods", "kube-reserved", "system-reserved-compressible"})));
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(all.at("/podruntime.slice"), (Files{{"cpu.weight", "39"},
                                                {"memory.max", "3221225472"},
                                                {"pids.max", "1768"},
                                                {"hugetlb.2MB.max", "0"},
                                                {"hugetlb.1GB.max", "0"}}));
  EXPECT_EQ(all.at("/system.slice"), (Files{{"cpu.weight", "39"}}));
}

TEST(NodeTree, AnEmptyReservationLimitsNothing) {
  AllocatableConfig all = value({"pods", "system-reserved"});
  all.system_reserved = {{"memory", "0"}, {"pid", "0"}};
  EXPECT_EQ(tree(cgroups(all)).at("/system.slice"),
            (Files{{"hugetlb.2MB.max", "0"}, {"hugetlb.1GB.max", "0"}}));
}

TEST(NodeTree, IsEmptyWithoutCgroupsPerQos) {
  AllocatableConfig all = value({"none"});
  all.cgroups_per_qos = false;
  EXPECT_TRUE(cgroups(all).empty());
}

TEST(NodeTree, TheSameFormulaIsUsedAtEveryLevel) {
  const QosTierSums sums{
      .burstable_cpu = MilliCpu{1000}, .burstable_memory = {}, .guaranteed_memory = {}};
  const auto all =
      cgroups(value({"pods", "kube-reserved"}), {.weights = WeightFormula::kQuadratic}, sums);
  EXPECT_EQ(values_of(all, Role::kKubeReserved).cpu_weight, CpuWeight{100});
  EXPECT_EQ(values_of(all, Role::kBurstable).cpu_weight, CpuWeight{100});
  EXPECT_EQ(values_of(all, Role::kBestEffort).cpu_weight, CpuWeight{1});
}

TEST(NodeTree, ParentsComeBeforeChildren) {
  const auto all = cgroups(value({"pods", "kube-reserved", "system-reserved"}));
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j)
      EXPECT_FALSE(all[i].path.starts_with(all[j].path + "/")) << all[i].path;
}

TEST(NodeTree, SupportsTheCgroupfsDriverToo) {
  AllocatableConfig all = value({"pods"});
  all.driver = CgroupDriver::kCgroupfs;
  const Tree files = tree(cgroups(all));
  EXPECT_TRUE(files.contains("/kubepods"));
  EXPECT_TRUE(files.contains("/kubepods/burstable"));
  EXPECT_TRUE(files.contains("/kubepods/besteffort"));
}

// --- the tiers ---------------------------------------------------------------------------------

Pod pod(QosClass qos, const char* cpu, const char* memory) {
  Pod made;
  made.declared_qos = qos;
  made.containers.push_back(
      {.name = "c", .requests = {{"cpu", q(cpu)}, {"memory", q(memory)}}, .limits = {}});
  return made;
}

TEST(QosTierSums, AreByClassAndCountOverhead) {
  Pod with_overhead = pod(QosClass::kBurstable, "250m", "1Gi");
  with_overhead.overhead = {{"cpu", q("50m")}, {"memory", q("64Mi")}};
  const Pod guaranteed = pod(QosClass::kGuaranteed, "2", "4Gi");
  const Pod best_effort = pod(QosClass::kBestEffort, "1", "1Gi");
  const std::vector<const Pod*> active{&with_overhead, &guaranteed, &best_effort, &with_overhead};
  EXPECT_EQ(qos_tier_sums(active), (QosTierSums{.burstable_cpu = MilliCpu{600},
                                                .burstable_memory = 2176_MiB,
                                                .guaranteed_memory = 4_GiB}));
  EXPECT_EQ(qos_tier_sums({}), QosTierSums{});
}

TEST(QosTierSums, Saturate) {
  const Pod huge = pod(QosClass::kBurstable, "9e15", "8Ei");
  const std::vector<const Pod*> active(3, &huge);
  EXPECT_EQ(qos_tier_sums(active).burstable_memory, Bytes{INT64_MAX});
  EXPECT_EQ(qos_tier_sums(active).burstable_cpu, MilliCpu{INT64_MAX});
}

constexpr QosTierSums kSums{
    .burstable_cpu = {1500}, .burstable_memory = 2_GiB, .guaranteed_memory = 4_GiB};

TEST(NodeTree, TheBurstableWeightIsTheSumOfItsRequests) {
  EXPECT_EQ(tree(cgroups(value({"pods"}), {}, kSums)).at(kBurstable).at("cpu.weight"), "59");
}

TEST(NodeTree, QosReservedWithholdsRequestsOfHigherClasses) {
  struct Case {
    const char* percent;
    Bytes burstable;
    Bytes best_effort;
  };
  for (const Case& c :
       {Case{"0%", 12_GiB, 12_GiB}, Case{"50%", 10_GiB, 9_GiB}, Case{"100%", 8_GiB, 6_GiB}}) {
    AllocatableConfig all = value({"pods"});
    all.qos_reserved = {{"memory", c.percent}};
    const auto made = cgroups(all, {}, kSums);
    EXPECT_EQ(values_of(made, Role::kBurstable).memory_max, Limit<Bytes>(c.burstable)) << c.percent;
    EXPECT_EQ(values_of(made, Role::kBestEffort).memory_max, Limit<Bytes>(c.best_effort))
        << c.percent;
  }
  EXPECT_FALSE(values_of(cgroups(value({"pods"}), {}, kSums), Role::kBurstable).memory_max);
}

TEST(NodeTree, MemoryQosProtectsRequests) {
  const auto of = [](Reservation reservation) {
    return tree(cgroups(value({"pods", "kube-reserved"}),
                        {.memory_qos = {.reservation = reservation, .throttling_factor = {}}},
                        kSums));
  };
  const Tree tiered = of(Reservation::kTiered);
  EXPECT_EQ(tiered.at("/podruntime.slice").at("memory.min"), "3221225472");
  EXPECT_FALSE(tiered.at(kBestEffort).contains("memory.low"));
  EXPECT_EQ(tiered.at(kPods).at("memory.min"), "4294967296");
  EXPECT_EQ(tiered.at(kPods).at("memory.low"), "2147483648");
  EXPECT_EQ(tiered.at(kBurstable).at("memory.low"), "2147483648");
  EXPECT_FALSE(tiered.at(kBurstable).contains("memory.min"));

  const Tree none = of(Reservation::kNone);
  EXPECT_EQ(none.at(kPods).at("memory.min"), "0") << "what an earlier policy wrote ends";
  EXPECT_EQ(none.at(kBurstable).at("memory.low"), "0");
  EXPECT_EQ(none.at("/podruntime.slice").at("memory.min"), "3221225472") << "a reserve is no pod";

  for (const auto& [path, files] : of(Reservation::kUnmanaged)) {
    EXPECT_FALSE(files.contains("memory.min")) << path;
    EXPECT_FALSE(files.contains("memory.low")) << path;
  }
}

TEST(NodeTree, AProtectionEndsWithItsPods) {
  const PodSizing sizing{
      .memory_qos = {.reservation = Reservation::kTiered, .throttling_factor = {}}};
  const auto all = cgroups(value({"pods"}), sizing, {});
  EXPECT_EQ(values_of(all, Role::kPods).memory_min, Limit<Bytes>(0_B));
  EXPECT_EQ(values_of(all, Role::kPods).memory_low, Limit<Bytes>(0_B));
  EXPECT_EQ(values_of(all, Role::kBurstable).memory_low, Limit<Bytes>(0_B));
}

// Whatever pods request, and whatever else is protected, no more memory is promised than there is.
TEST(NodeTree, ProtectionsNeverExceedCapacity) {
  for (const Reservation reservation : {Reservation::kTiered})
    for (const Bytes burstable : {0_B, 2_GiB, 13_GiB, Bytes{INT64_MAX}})
      for (const Bytes guaranteed : {0_B, 4_GiB, 17_GiB, Bytes{INT64_MAX}}) {
        const QosTierSums sums{
            .burstable_cpu = {}, .burstable_memory = burstable, .guaranteed_memory = guaranteed};
        const auto all =
            cgroups(value({"pods", "kube-reserved", "system-reserved"}),
                    {.memory_qos = {.reservation = reservation, .throttling_factor = {}}}, sums);
        Bytes promised{0};
        for (const Role role : {Role::kPods, Role::kKubeReserved, Role::kSystemReserved}) {
          const auto min = values_of(all, role).memory_min;
          ASSERT_TRUE(min && !min->is_max()) << name(role);
          promised += *min->most();
        }
        EXPECT_LE(promised, *capacity().memory);
      }
}

}  // namespace
}  // namespace headroom
