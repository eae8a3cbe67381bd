// SPDX-License-Identifier: Apache-2.0
// headroom.slices and the kubelet's keys and flags for what is reserved and how that is enforced.
#include "config/files.h"
#include "config/rows.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using Bad = test::BadFile;
using test::load_text;
using test::load_with;
using test::said;
using Lines = std::vector<std::string>;

TEST(SlicesConfig, AreOffByDefault) {
  const auto config = load_text("maxPods: 1\n");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->slices.mode, SlicesMode::kOff);
  EXPECT_FALSE(config->slices.persistent);
}

TEST(SlicesConfig, UnquotedOffIsOff) {
  for (const char* off : {"off", "\"off\""}) {
    const auto config = load_text("headroom: {slices: {mode: " + std::string(off) + "}}\n");
    ASSERT_TRUE(config) << said(config)[0];
    EXPECT_EQ(config->slices.mode, SlicesMode::kOff);
  }
}

TEST(SlicesConfig, AreReadFromKubeletAndHeadroomKeys) {
  const auto config = load_text(R"(kubeReserved: {cpu: 500m, memory: 1Gi}
systemReserved: {memory: 512Mi, pid: "1000"}
kubeReservedCgroup: kube-reserved.slice
systemReservedCgroup: /system.slice
enforceNodeAllocatable: [pods, kube-reserved, system-reserved-compressible]
qosReserved: {memory: 50%}
headroom:
  slices: {mode: enforce, persistent: true, weights: quadratic}
)");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->slices, (SlicesConfig{SlicesMode::kEnforce, true, WeightFormula::kQuadratic}));
  const AllocatablePolicy& reserved = config->reserved;
  EXPECT_EQ(reserved.kube.enforcement, Enforcement::kAll);
  EXPECT_EQ(reserved.kube.path, "/kube.slice/kube-reserved.slice");
  EXPECT_EQ(reserved.system.enforcement, Enforcement::kCompressible);
  EXPECT_EQ(reserved.system.path, "/system.slice");
  EXPECT_TRUE(reserved.enforce_pods);
  EXPECT_EQ(reserved.qos_reserved_memory, 50);
  ASSERT_TRUE(reserved.kubepods);
  EXPECT_EQ(reserved.kubepods->path(reserved.driver), "/kubepods.slice");
}

TEST(SlicesConfig, FlagsOverrideTheFile) {
  const auto config = load_with(
      "kubeReserved: {cpu: 500m}\nsystemReserved: {memory: 1Gi}\ncgroupRoot: /a\n"
      "headroom: {slices: {mode: observe}}\n",
      {"--kube-reserved=memory=2Gi,cpu=1", "--system-reserved", "pid=7", "--cgroup-root=/kubelet",
       "--kube-reserved-cgroup=kube.slice", "--system-reserved-cgroup=system.slice",
       "--enforce-node-allocatable=pods,kube-reserved,system-reserved", "--qos-reserved=memory=10%",
       "--cgroups-per-qos", "--experimental-allocatable-ignore-eviction=true"});
  ASSERT_TRUE(config) << to_string(config.error()[0]);
  const AllocatablePolicy& reserved = config->reserved;
  EXPECT_EQ(reserved.kube.amounts.memory, 2_GiB);
  EXPECT_EQ(reserved.kube.amounts.cpu, MilliCpu{1000});
  EXPECT_EQ(reserved.system.amounts.memory, std::nullopt);
  EXPECT_EQ(reserved.system.amounts.pids, Tasks{7});
  EXPECT_EQ(reserved.kube.path, "/kube.slice");
  EXPECT_EQ(reserved.qos_reserved_memory, 10);
  EXPECT_TRUE(reserved.ignore_eviction_threshold);
  EXPECT_EQ(config->pods_cgroup, "kubelet.slice/kubelet-kubepods.slice");
  EXPECT_EQ(reserved.kubepods->path(reserved.driver), "/" + config->pods_cgroup);
}

TEST(SlicesConfig, FlagsWithoutAFileReserveToo) {
  const auto config = load_with("headroom: {slices: {mode: observe}}\n",
                                {"--reserved-cpus=0-1", "--enforce-node-allocatable=none",
                                 "--cgroups-per-qos=false", "--cgroup-driver=cgroupfs"});
  ASSERT_TRUE(config) << to_string(config.error()[0]);
  EXPECT_EQ(config->reserved.system.amounts.cpu, MilliCpu{2000});
  EXPECT_FALSE(config->reserved.enforce_pods);
  EXPECT_FALSE(config->reserved.kubepods);
  EXPECT_EQ(config->pods_cgroup, "kubepods");
}

// The kubelet may have its cgroup from a flag that is not seen here.
TEST(SlicesConfig, OffDoesNotCheckReservations) {
  const auto config = load_text(
      "enforceNodeAllocatable: [pods, kube-reserved]\nkubeReservedCgroup: /kubelet/x\n"
      "headroom: {podsCgroup: mine.slice}\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->reserved.kube.enforcement, Enforcement::kNone);
  EXPECT_EQ(config->system_cgroups.kube_reserved, "/kubelet/x");
}

class BadSlices : public testing::TestWithParam<Bad> {};

TEST_P(BadSlices, AreReported) {
  EXPECT_EQ(said(load_text(GetParam().text)), GetParam().diagnostics);
}

const Bad kBad[] = {
    {"another_mode",
     "headroom: {slices: {mode: on}}\n",
     {"3: headroom.slices.mode: expected a string (put it in quotes), found the boolean on"}},
    {"another_key",
     "headroom: {slices: {mod: enforce}}\n",
     {"3: unknown key headroom.slices.mod, did you mean mode?"}},
    {"a_reserve_without_its_cgroup",
     "enforceNodeAllocatable: [pods,\n  kube-reserved]\nheadroom: {slices: {mode: enforce}}\n",
     {"4: enforceNodeAllocatable.kube-reserved: invalid configuration: kubeReservedCgroup "
      "(--kube-reserved-cgroup) must be specified when \"kube-reserved\" or "
      "\"kube-reserved-compressible\" included in enforceNodeAllocatable "
      "(--enforce-node-allocatable)"}},
    {"the_default_without_its_tree",
     "cgroupsPerQOS: false\nheadroom:\n  slices: {mode: observe}\n",
     {"5: enforceNodeAllocatable.pods: invalid configuration: cgroupsPerQOS (--cgroups-per-qos) "
      "must be set to true when \"pods\" contained in enforceNodeAllocatable "
      "(--enforce-node-allocatable)"}},
    {"two_kinds_of_reserving_cpus",
     "reservedSystemCPUs: \"0\"\nsystemReservedCgroup: system.slice\nheadroom: {slices: {mode: "
     "observe}}\n",
     {"3: reservedSystemCPUs: invalid configuration: can't use reservedSystemCPUs "
      "(--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or "
      "kubeReservedCgroup (--kube-reserved-cgroup)"}},
    {"no_slice_and_pods_elsewhere",
     "kubeReservedCgroup: /system.slice/kubelet.service\n"
     "enforceNodeAllocatable: [pods, kube-reserved, pods]\n"
     "headroom: {slices: {mode: enforce}, podsCgroup: mine.slice}\n",
     {"3: kubeReservedCgroup: invalid configuration: cgroup \"/system.slice/kubelet.service\" is "
      "not a slice, and the systemd driver sizes slices only; name the slice it runs in, such as "
      "/system.slice",
      "4: enforceNodeAllocatable: pods is there twice",
      "5: headroom.podsCgroup: with headroom.slices the pods' cgroup follows from cgroupDriver and "
      "cgroupRoot; expected kubepods.slice, or nothing, found \"mine.slice\""}},
    {"enforcing_without_systemd",
     "cgroupDriver: cgroupfs\nheadroom: {slices: {mode: enforce}}\n",
     {"3: cgroupDriver: headroom.slices.mode enforce sets the values of systemd's slices; expected "
      "systemd, or headroom.slices.mode observe"}},
    {"qos_of_cpu",
     "qosReserved: {cpu: 50%}\nheadroom: {slices: {mode: observe}}\n",
     {"3: qosReserved.cpu: --qos-reserved value failed to parse: cannot reserve \"cpu\" resource; "
      "only memory can be"}},
};
INSTANTIATE_TEST_SUITE_P(Bad, BadSlices, testing::ValuesIn(kBad), test::RowName{});

TEST(SlicesConfig, InvalidFlagsAreReported) {
  const auto config =
      load_with("headroom: {slices: {mode: observe}}\n",
                {"--kube-reserved=memory", "--system-reserved=gpu=1", "--cgroups-per-qos=maybe"});
  ASSERT_FALSE(config);
  Lines lines;
  for (const Diagnostic& diagnostic : config.error())
    lines.push_back(to_string(diagnostic));
  EXPECT_EQ(lines,
            (Lines{"--kube-reserved: \"memory\": expected name=amount",
                   "--cgroups-per-qos: expected true or false, found \"maybe\"",
                   "--system-reserved: systemReserved.gpu: --system-reserved value failed to "
                   "parse: cannot reserve \"gpu\" resource; what can be is cpu, memory, "
                   "ephemeral-storage and pid"}));
}

}  // namespace
}  // namespace headroom::config
