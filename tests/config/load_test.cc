// SPDX-License-Identifier: Apache-2.0
// What a configuration file comes to.
#include "config/load/load.h"

#include "config/files.h"
#include "config/rows.h"
#include "config/thresholds_as_text.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using test::load_text;
using test::RowName;
using test::said;
using test::thresholds_as_text;
using namespace std::chrono_literals;

TEST(Load, DefaultsAreTheKubelets) {
  const auto config = load_text("");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(thresholds_as_text(config->policy.thresholds),
            (std::vector<std::string>{"allocatableMemory.available < 100Mi",
                                      "imagefs.available < 15%", "imagefs.inodesFree < 5%",
                                      "kernel.memAvailable < 50Mi", "memory.available < 100Mi",
                                      "nodefs.available < 10%", "nodefs.inodesFree < 5%"}));
  EXPECT_EQ(config->policy.pressure_transition, 5min);
  EXPECT_EQ(config->policy.max_pod_grace, 0s);
  EXPECT_EQ(config->policy.mode, Mode::kObserve);
  EXPECT_EQ(config->listen, "127.0.0.1:9750");
  EXPECT_EQ(config->pods_cgroup, "kubepods.slice");
}

TEST(Load, AnEvictionForCpusIsAskedFor) {
  constexpr const char* kThreshold = "headroom: {pressure: {cpu: {threshold: 30%";
  const auto period = [&](const std::string& rest) {
    const auto config = load_text(kThreshold + rest + "}}}\n");
    EXPECT_TRUE(config) << rest;
    return config ? config->policy.cpu_eviction_period : std::nullopt;
  };
  EXPECT_EQ(period(""), std::nullopt);
  EXPECT_EQ(period(", evictPeriod: 1m"), std::nullopt);
  EXPECT_EQ(period(", evict: true"), 5min);
  EXPECT_EQ(period(", evict: true, evictPeriod: 1m"), 1min);
}

struct Said {
  const char* name;
  const char* text;
  std::vector<std::string> thresholds;
};
void PrintTo(const Said& row, std::ostream* out) {
  *out << row.name;
}

class Thresholds : public testing::TestWithParam<Said> {};

TEST_P(Thresholds, AreBuilt) {
  const auto config = load_text(GetParam().text);
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(thresholds_as_text(config->policy.thresholds), GetParam().thresholds);
}

const Said kExpectedText[] = {
    {"one_signal_drops_the_others",
     "evictionHard: {memory.available: 1Gi}\nenforceNodeAllocatable: []\n",
     {"kernel.memAvailable < 50Mi", "memory.available < 1Gi"}},
    {"an_empty_map_is_none_at_all", "evictionHard: {}\n", {}},
    {"a_null_is_the_default",
     "evictionHard:\nenforceNodeAllocatable: [none]\n",
     {"imagefs.available < 15%", "imagefs.inodesFree < 5%", "kernel.memAvailable < 50Mi",
      "memory.available < 100Mi", "nodefs.available < 10%", "nodefs.inodesFree < 5%"}},
    {"merged_with_the_defaults",
     "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n"
     "enforceNodeAllocatable: [none]\n",
     {"imagefs.available < 15%", "imagefs.inodesFree < 5%", "kernel.memAvailable < 50Mi",
      "memory.available < 1Gi", "nodefs.available < 10%", "nodefs.inodesFree < 5%"}},
    {"a_soft_one_with_grace_and_reclaim",
     "evictionHard: {}\nevictionSoft: {memory.available: 1.5Gi}\n"
     "evictionSoftGracePeriod: {memory.available: 1m30s}\n"
     "evictionMinimumReclaim: {memory.available: 200Mi}\n",
     {"memory.available < 1536Mi for 90s, reclaim 200Mi"}},
    {"an_alias_is_what_it_names",
     "evictionSoft: &s {memory.available: 1Gi}\nevictionHard: *s\n"
     "evictionSoftGracePeriod: {memory.available: 10s}\nenforceNodeAllocatable: []\n",
     {"kernel.memAvailable < 50Mi", "memory.available < 1Gi", "memory.available < 1Gi for 10s"}},
    {"pressure_is_crossed_when_less_than_the_rest_is_left",
     "evictionHard: {}\nheadroom: {pressure: {memory: {threshold: \"20%\"}}}\n",
     {"memory.pressure < 80% for 10s"}},
    {"pressure_with_a_grace_of_its_own",
     "evictionHard: {}\nheadroom:\n  pressure:\n    memory: {threshold: 5%, grace: 1m, window: "
     "2s}\n",
     {"memory.pressure < 95% for 60s"}},
    {"pressure_of_cpus_has_a_longer_grace",
     "evictionHard: {}\nheadroom: {pressure: {cpu: {threshold: 60%}}}\n",
     {"cpu.pressure < 40% for 60s"}},
    {"pressure_of_both",
     "evictionHard: {}\nheadroom:\n  pressure:\n    memory: {threshold: 5%}\n    cpu: {threshold: "
     "75%, grace: 2s}\n",
     {"cpu.pressure < 25% for 2s", "memory.pressure < 95% for 10s"}},
};
INSTANTIATE_TEST_SUITE_P(Maps, Thresholds, testing::ValuesIn(kExpectedText), RowName{});

TEST(Load, ReadsEveryHeadroomKey) {
  const auto config = load_text(R"(evictionMaxPodGracePeriod: -1
evictionPressureTransitionPeriod: 30s
headroom:
  mode: enforce
  listen: "[::1]:9100"
  podManifests: /srv/pods
  auditLog: /srv/audit
  stateDirectory: /srv/state
  podsCgroup: /kubepods/
  compatibilityMetrics: true
  metrics: {oldNames: off}
  logLevel: debug
  hardGrace: 1s
  fastestFill: 16Gi
  checkFloor: 5ms
  checkCeiling: 2s
  sweepPeriod: 500ms
  selfCheckPeriod: 10m
  pressure: {memory: {threshold: 20%, window: 3s}}
)");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->policy.max_pod_grace, -1s);
  EXPECT_EQ(config->policy.pressure_transition, 30s);
  EXPECT_EQ(config->policy.mode, Mode::kEnforce);
  EXPECT_EQ(config->listen, "[::1]:9100");
  EXPECT_EQ(config->pod_manifests, "/srv/pods");
  EXPECT_EQ(config->audit_log, "/srv/audit");
  EXPECT_EQ(config->state_dir, "/srv/state");
  EXPECT_EQ(config->pods_cgroup, "kubepods");
  EXPECT_TRUE(config->compatibility_metrics);
  EXPECT_FALSE(config->metrics.old_names);
  EXPECT_EQ(config->log_level, "debug");
  EXPECT_EQ(config->self_check_period, 10min);
  EXPECT_EQ(config->policy.hard_grace, 1s);
  EXPECT_EQ(config->policy.fastest_fill, std::int64_t{16} << 30);
  EXPECT_TRUE(config->fastest_fill_configured);
  EXPECT_EQ(config->policy.check_floor, 5ms);
  EXPECT_EQ(config->policy.check_ceiling, 2s);
  EXPECT_EQ(config->policy.sweep_period, 500ms);
  EXPECT_EQ(config->policy.pressure_window, 3s);
}

struct Cgroup {
  const char* name;
  const char* text;
  const char* cgroup;
};
void PrintTo(const Cgroup& row, std::ostream* out) {
  *out << row.name;
}

TEST(Load, HostNamesAreNamesWithoutPorts) {
  EXPECT_TRUE(load_text("headroom: {mode: observe}\n")->host_names.empty());
  EXPECT_EQ(load_text("headroom: {hostNames: [node-1.example, node-1]}\n")->host_names,
            (std::vector<std::string>{"node-1.example", "node-1"}));
  for (const char* bad : {"\"node:9750\"", "http://node", "\"\"", "\"[::1]\""})
    EXPECT_NE(said(load_text("headroom: {hostNames: [" + std::string(bad) + "]}\n"))[0].find(
                  "want names without a port"),
              std::string::npos)
        << bad;
}

TEST(Load, OldMetricNamesAreServedUnlessTurnedOff) {
  EXPECT_TRUE(load_text("headroom: {mode: observe}\n")->metrics.old_names);
  EXPECT_TRUE(load_text("headroom: {metrics: {oldNames: true}}\n")->metrics.old_names);
  EXPECT_FALSE(load_text("headroom: {metrics: {oldNames: false}}\n")->metrics.old_names);
  EXPECT_NE(said(load_text("headroom: {metrics: {oldName: false}}\n"))[0].find("did you mean "
                                                                               "oldNames?"),
            std::string::npos);
}

class PodsCgroup : public testing::TestWithParam<Cgroup> {};

TEST_P(PodsCgroup, IsWhereTheKubeletPutsIt) {
  const auto config = load_text(GetParam().text);
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->pods_cgroup, GetParam().cgroup);
}

const Cgroup kCgroups[] = {
    {"systemd", "cgroupDriver: systemd\n", "kubepods.slice"},
    {"cgroupfs", "cgroupDriver: cgroupfs\n", "kubepods"},
    {"systemd_below_a_root", "cgroupDriver: systemd\ncgroupRoot: /kubelet\n",
     "kubelet.slice/kubelet-kubepods.slice"},
    {"a_dash_would_be_another_slice", "cgroupRoot: /my-node\n",
     "my_node.slice/my_node-kubepods.slice"},
    {"cgroupfs_below_a_root", "cgroupDriver: cgroupfs\ncgroupRoot: /a/b\n", "a/b/kubepods"},
    {"ours_wins", "headroom: {podsCgroup: mine.slice}\ncgroupDriver: cgroupfs\n", "mine.slice"},
};
INSTANTIATE_TEST_SUITE_P(Drivers, PodsCgroup, testing::ValuesIn(kCgroups), RowName{});

}  // namespace
}  // namespace headroom::config
