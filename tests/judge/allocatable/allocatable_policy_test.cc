// SPDX-License-Identifier: Apache-2.0
// What the configuration says of reserves, enforcement and pod sizing: read, or refused in the
// kubelet's words and all at once.
#include "judge/allocatable/allocatable_policy.h"

#include "judge/allocatable/pod_sizing.h"

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> sentences(const std::vector<SettingError>& errors) {
  std::vector<std::string> texts;
  for (const SettingError& error : errors)
    texts.push_back(error.what);
  return texts;
}

AllocatableConfig with_cgroups(std::vector<std::string> enforce) {
  AllocatableConfig value;
  value.enforce = std::move(enforce);
  value.kube_reserved_cgroup = "/podruntime.slice";
  value.system_reserved_cgroup = "/system.slice";
  return value;
}

TEST(AllocatablePolicy, WithoutSettingsUsesKubeletDefaults) {
  const auto policy = allocatable_policy({});
  ASSERT_TRUE(policy);
  EXPECT_TRUE(policy->enforce_pods);
  EXPECT_EQ(policy->kube.enforcement, Enforcement::kNone);
  EXPECT_EQ(policy->system.enforcement, Enforcement::kNone);
  EXPECT_EQ(policy->kubepods->path(policy->driver), "/kubepods.slice");
  EXPECT_EQ(policy->kube.amounts, Amounts{});
}

TEST(AllocatablePolicy, ReadsAmounts) {
  AllocatableConfig value;
  value.system_reserved = {
      {"cpu", "1.5"}, {"memory", "1Gi"}, {"ephemeral-storage", "1e9"}, {"pid", "1k"}};
  value.kube_reserved = {{"cpu", "0.1m"}, {"memory", "0"}};
  const auto policy = allocatable_policy(value);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->system.amounts, (Amounts{.cpu = MilliCpu{1500},
                                             .memory = 1_GiB,
                                             .ephemeral_storage = Bytes{1'000'000'000},
                                             .pids = Tasks{1000}}));
  EXPECT_EQ(policy->kube.amounts, (Amounts{.cpu = MilliCpu{1}, .memory = 0_B}));
}

TEST(AllocatablePolicy, ReadsTheEnforcementTable) {
  struct Case {
    const char* says;
    std::vector<std::string> keys;
    bool pods;
    Enforcement kube;
    Enforcement system;
  };
  constexpr auto kNone = Enforcement::kNone;
  constexpr auto kCompressible = Enforcement::kCompressible;
  constexpr auto kAll = Enforcement::kAll;
  for (const Case& c :
       {Case{"pods", {"pods"}, true, kNone, kNone}, Case{"none", {"none"}, false, kNone, kNone},
        Case{"empty", {}, false, kNone, kNone},
        Case{"all_three", {"pods", "kube-reserved", "system-reserved"}, true, kAll, kAll},
        Case{"compressible",
             {"kube-reserved-compressible", "pods", "system-reserved-compressible"},
             true,
             kCompressible,
             kCompressible},
        Case{"mixed",
             {"system-reserved", "kube-reserved-compressible"},
             false,
             kCompressible,
             kAll}}) {
    const auto policy = allocatable_policy(with_cgroups(c.keys));
    ASSERT_TRUE(policy) << c.says;
    EXPECT_EQ(policy->enforce_pods, c.pods) << c.says;
    EXPECT_EQ(policy->kube.enforcement, c.kube) << c.says;
    EXPECT_EQ(policy->system.enforcement, c.system) << c.says;
  }
}

TEST(AllocatablePolicy, NoneNeedsNoQosCgroups) {
  AllocatableConfig value;
  value.enforce = {"none"};
  value.cgroups_per_qos = false;
  const auto policy = allocatable_policy(value);
  ASSERT_TRUE(policy);
  EXPECT_FALSE(policy->kubepods);
}

TEST(AllocatablePolicy, RejectsEnforcementsWithTheKubeletsMessages) {
  struct Case {
    const char* says;
    std::vector<std::string> keys;
    std::vector<std::string> errors;
  };
  const std::string in = " in enforceNodeAllocatable (--enforce-node-allocatable)";
  for (const Case& c : {
           Case{"twice",
                {"pods", "pods"},
                {"invalid configuration: duplicated enforcements \"pods\"" + in}},
           Case{"both_forms",
                {"system-reserved", "system-reserved-compressible"},
                {"invalid configuration: both \"system-reserved\" and "
                 "\"system-reserved-compressible\" cannot be specified together" +
                 in}},
           Case{"none_beside_another",
                {"none", "pods"},
                {"invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may "
                 "not contain additional enforcements when \"none\" is specified"}},
           Case{"unknown",
                {"Pods"},
                {"invalid configuration: option \"Pods\" specified for enforceNodeAllocatable "
                 "(--enforce-node-allocatable). Valid options are \"pods\", \"system-reserved\", "
                 "\"system-reserved-compressible\", \"kube-reserved\", "
                 "\"kube-reserved-compressible\" or \"none\""}},
       }) {
    const auto policy = allocatable_policy(with_cgroups(c.keys));
    ASSERT_FALSE(policy) << c.says;
    EXPECT_EQ(sentences(policy.error()), c.errors) << c.says;
    EXPECT_EQ(policy.error().front().field, "enforceNodeAllocatable") << c.says;
  }
}

TEST(AllocatablePolicy, AReserveNeedsItsCgroup) {
  AllocatableConfig value;
  value.enforce = {"kube-reserved-compressible", "system-reserved"};
  const auto policy = allocatable_policy(value);
  ASSERT_FALSE(policy);
  EXPECT_EQ(sentences(policy.error()),
            (std::vector<std::string>{
                "invalid configuration: kubeReservedCgroup (--kube-reserved-cgroup) must be "
                "specified when \"kube-reserved\" or \"kube-reserved-compressible\" included in "
                "enforceNodeAllocatable (--enforce-node-allocatable)",
                "invalid configuration: systemReservedCgroup (--system-reserved-cgroup) must be "
                "specified when \"system-reserved\" or \"system-reserved-compressible\" included "
                "in enforceNodeAllocatable (--enforce-node-allocatable)"}));
}

TEST(AllocatablePolicy, RejectsAmountsWithTheKubeletsMessages) {
  struct Case {
    const char* resource;
    const char* text;
    const char* error;
  };
  for (const Case& c :
       {Case{"memory", "-1Gi",
             "--kube-reserved value failed to parse: resource quantity for \"memory\" cannot be "
             "negative: -1Gi"},
        Case{"pods", "3",
             "--kube-reserved value failed to parse: cannot reserve \"pods\" resource; what can be "
             "is cpu, memory, ephemeral-storage and pid"},
        Case{"hugepages-2Mi", "4Mi",
             "--kube-reserved value failed to parse: cannot reserve \"hugepages-2Mi\" resource; "
             "what can be is cpu, memory, ephemeral-storage and pid"}}) {
    AllocatableConfig value;
    value.kube_reserved = {{c.resource, c.text}};
    const auto policy = allocatable_policy(value);
    ASSERT_FALSE(policy) << c.resource;
    EXPECT_EQ(policy.error(), (std::vector<SettingError>{{"kubeReserved", c.resource, c.error}}));
  }
  AllocatableConfig value;
  value.system_reserved = {{"cpu", "one"}};
  EXPECT_TRUE(allocatable_policy(value).error().front().what.starts_with(
      "--system-reserved value failed to parse: failed to parse quantity \"one\" for \"cpu\" "
      "resource: "));
}

TEST(AllocatablePolicy, QosReservedIsAWholePercentageOfMemory) {
  struct Case {
    const char* resource;
    const char* text;
    const char* error;
  };
  const std::string prefix = "--qos-reserved value failed to parse: ";
  const std::string of_memory = "failed to parse percentage \"";
  for (const Case& c :
       {Case{"cpu", "5%", "cannot reserve \"cpu\" resource; only memory can be"},
        Case{"memory", "50",
             "failed to parse percentage \"50\" for \"memory\" resource: percentage expected, got "
             "'50'"},
        Case{"memory", "5.5%",
             "failed to parse percentage \"5.5%\" for \"memory\" resource: invalid number in "
             "percentage '5.5%'"},
        Case{"memory", "%",
             "failed to parse percentage \"%\" for \"memory\" resource: invalid number in "
             "percentage '%'"},
        Case{"memory", "101%",
             "failed to parse percentage \"101%\" for \"memory\" resource: percentage must be "
             "between 0 and 100"},
        Case{"memory", "-1%",
             "failed to parse percentage \"-1%\" for \"memory\" resource: percentage must be "
             "between 0 and 100"}}) {
    AllocatableConfig value;
    value.qos_reserved = {{c.resource, c.text}};
    const auto policy = allocatable_policy(value);
    ASSERT_FALSE(policy) << c.text;
    EXPECT_EQ(sentences(policy.error()), std::vector<std::string>{prefix + c.error});
  }
  AllocatableConfig value;
  for (const int percent : {0, 50, 100}) {
    value.qos_reserved = {{"memory", std::to_string(percent) + "%"}};
    EXPECT_EQ(allocatable_policy(value)->qos_reserved_memory, percent);
  }
}

TEST(AllocatablePolicy, ReservedCpusReplaceTheCpuReservation) {
  AllocatableConfig value;
  value.kube_reserved = {{"cpu", "1"}, {"memory", "1Gi"}};
  value.system_reserved = {{"cpu", "500m"}};
  value.reserved_cpus = 4;
  const auto policy = allocatable_policy(value);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->kube.amounts, (Amounts{.memory = 1_GiB}));
  EXPECT_EQ(policy->system.amounts, (Amounts{.cpu = MilliCpu{4000}}));

  value.kube_reserved_cgroup = "/podruntime.slice";
  EXPECT_EQ(sentences(allocatable_policy(value).error()),
            std::vector<std::string>{
                "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with "
                "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup "
                "(--kube-reserved-cgroup)"});
}

TEST(AllocatablePolicy, EachReserveNeedsACgroupOfItsOwn) {
  AllocatableConfig value = with_cgroups({"kube-reserved", "system-reserved"});
  value.kube_reserved_cgroup = "system.slice";  // the same, spelt otherwise
  const auto policy = allocatable_policy(value);
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().front().field, "kubeReservedCgroup");
  value.enforce = {"pods", "system-reserved"};
  EXPECT_TRUE(allocatable_policy(value));
}

TEST(AllocatablePolicy, FormatsPathsForTheDriver) {
  AllocatableConfig value = with_cgroups({"pods"});
  value.cgroup_root = "/my-root";
  value.kube_reserved_cgroup = "kube-reserved.slice";
  auto policy = allocatable_policy(value);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->kube.path, "/kube.slice/kube-reserved.slice");
  EXPECT_EQ(policy->kubepods->path(policy->driver), "/my_root.slice/my_root-kubepods.slice");

  value.driver = CgroupDriver::kCgroupfs;
  value.kube_reserved_cgroup = "/kube-reserved";
  policy = allocatable_policy(value);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->kube.path, "/kube-reserved");
  EXPECT_EQ(policy->kubepods->path(policy->driver), "/my-root/kubepods");
}

TEST(AllocatablePolicy, ARootMustLeaveRoomForPods) {
  AllocatableConfig value;
  value.cgroup_root = "/" + std::string(200, 'r');
  ASSERT_FALSE(allocatable_policy(value));
  EXPECT_EQ(allocatable_policy(value).error().front().field, "cgroupRoot");
  value.cgroup_root = "/" + std::string(150, 'r');
  EXPECT_TRUE(allocatable_policy(value));
}

TEST(AllocatablePolicy, EveryErrorAtOnce) {
  AllocatableConfig value;
  value.enforce = {
      "system-reserved", "system-reserved-compressible", "bogus", "none", "pods", "pods"};
  value.cgroups_per_qos = true;
  value.kube_reserved = {{"cpu", "x"}, {"memory", "-1"}, {"gpu", "1"}};
  value.system_reserved = {{"pid", "-5"}};
  value.kube_reserved_cgroup = "/kube-reserved";
  value.cgroup_root = "/a_b";
  value.qos_reserved = {{"cpu", "1%"}, {"memory", "1"}};
  value.reserved_cpus = 2;
  const auto policy = allocatable_policy(value);
  ASSERT_FALSE(policy);
  std::vector<std::string> fields;
  for (const SettingError& error : policy.error())
    fields.push_back(error.key.empty() ? error.field : error.field + "." + error.key);
  EXPECT_EQ(
      fields,
      (std::vector<std::string>{
          "enforceNodeAllocatable.system-reserved-compressible",
          "enforceNodeAllocatable.system-reserved",
          "enforceNodeAllocatable.system-reserved-compressible", "enforceNodeAllocatable.bogus",
          "enforceNodeAllocatable.none", "enforceNodeAllocatable.pods", "reservedSystemCPUs",
          "kubeReserved.cpu", "kubeReserved.gpu", "kubeReserved.memory", "systemReserved.pid",
          "kubeReservedCgroup", "cgroupRoot", "qosReserved.cpu", "qosReserved.memory"}));
}

TEST(AllocatablePolicy, EnforcementWithoutQosCgroupsIsRejectedKeyByKey) {
  AllocatableConfig value = with_cgroups({"pods", "kube-reserved", "nonsense"});
  value.cgroups_per_qos = false;
  const auto policy = allocatable_policy(value);
  ASSERT_FALSE(policy);
  ASSERT_EQ(policy.error().size(), 3u);
  EXPECT_EQ(policy.error()[0].what,
            "invalid configuration: cgroupsPerQOS (--cgroups-per-qos) must be set to true when "
            "\"pods\" contained in enforceNodeAllocatable (--enforce-node-allocatable)");
  EXPECT_EQ(policy.error()[1].key, "kube-reserved");
  EXPECT_EQ(policy.error()[2].key, "nonsense");
}

TEST(PodSizing, WithoutSettingsUsesKubeletDefaults) {
  const auto sizing = pod_sizing({}, WeightFormula::kQuadratic);
  ASSERT_TRUE(sizing);
  EXPECT_EQ(sizing->weights, WeightFormula::kQuadratic);
  EXPECT_TRUE(sizing->cpu_quota);
  EXPECT_EQ(sizing->cpu_period, Microseconds(100'000));
  EXPECT_FALSE(sizing->pids_limit);
  EXPECT_EQ(sizing->memory_qos, MemoryQos{});
  EXPECT_EQ(sizing->swap, SwapBehavior::kNoSwap);
  EXPECT_TRUE(sizing->oom_kills_group);
}

// As 1.37, where the gate is on by default and both keys are valid whatever it is.
TEST(PodSizing, MemoryQosFollowsItsKeysUnlessTheGateIsOff) {
  using enum MemoryQos::Reservation;
  struct Case {
    const char* says;
    std::optional<bool> gate;
    const char* policy;
    std::optional<double> factor;
    MemoryQos expected;
  };
  for (const Case& c :
       {Case{"nothing", {}, "", {}, {}},
        Case{"gate_alone", true, "", {}, {.reservation = kNone, .throttling_factor = {}}},
        Case{"none", {}, "None", {}, {.reservation = kNone, .throttling_factor = {}}},
        Case{"tiered", {}, "TieredReservation", {}, {kTiered, {}}},
        Case{"tiered_with_gate", true, "TieredReservation", 0.9, {kTiered, 0.9}},
        Case{"factor_alone", {}, "", 0.5, {kUnmanaged, 0.5}},
        Case{"gate_off", false, "TieredReservation", 0.5, {}}}) {
    const auto sizing = pod_sizing(
        {.memory_qos_gate = c.gate, .throttling_factor = c.factor, .reservation_policy = c.policy},
        {});
    ASSERT_TRUE(sizing) << c.says;
    EXPECT_EQ(sizing->memory_qos, c.expected) << c.says;
  }
}

TEST(PodSizing, ReadsPidsAndSwap) {
  EXPECT_EQ(pod_sizing({.pids_limit = 100}, {})->pids_limit, Tasks{100});
  EXPECT_FALSE(pod_sizing({.pids_limit = 0}, {})->pids_limit);
  EXPECT_EQ(pod_sizing({.swap_behavior = "LimitedSwap"}, {})->swap, SwapBehavior::kLimitedSwap);
}

TEST(PodSizing, RejectsWithTheKubeletsMessages) {
  struct Case {
    PodSizingConfig value;
    const char* error;
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::string prefix = "invalid configuration: ";
  for (const Case& c : {
           Case{{.cpu_period = 10ms},
                "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 10ms requires feature gate "
                "CustomCPUCFSQuotaPeriod"},
           Case{{.cpu_period = 2s, .custom_period_gate = true},
                "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between 1ms and 1sec, "
                "inclusive"},
           Case{{.throttling_factor = 0.0},
                "memoryThrottlingFactor 0 must be greater than 0 and less than or equal to 1.0"},
           Case{{.throttling_factor = 1.1},
                "memoryThrottlingFactor 1.1 must be greater than 0 and less than or equal to 1.0"},
           Case{{.throttling_factor = kNan},
                "memoryThrottlingFactor nan must be greater than 0 and less than or equal to 1.0"},
           Case{{.reservation_policy = "tiered"},
                "option \"tiered\" specified for memoryReservationPolicy. Valid options are "
                "\"None\" or \"TieredReservation\""},
           Case{{.swap_behavior = "UnlimitedSwap"},
                "memorySwap.swapBehavior \"UnlimitedSwap\" must be one of: \"\", \"LimitedSwap\" "
                "or \"NoSwap\""},
       }) {
    const auto sizing = pod_sizing(c.value, {});
    ASSERT_FALSE(sizing) << c.error;
    EXPECT_EQ(sentences(sizing.error()), std::vector<std::string>{prefix + c.error});
  }
}

TEST(PodSizing, EveryErrorAtOnce) {
  const auto sizing = pod_sizing(
      {.cpu_period = 10ms, .throttling_factor = 7, .reservation_policy = "x", .swap_behavior = "y"},
      {});
  ASSERT_FALSE(sizing);
  EXPECT_EQ(sizing.error().size(), 4u);
}

}  // namespace
}  // namespace headroom
