// SPDX-License-Identifier: Apache-2.0
// A pod that names a device has its CPUs where the device is, if the topology manager has a say.
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/cpuset_pods.h"
#include "judge/cpuset/hints/cpu_hints.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

struct Row {
  const char* name;
  const char* devices;  // the annotation
  const char* cpu;
  TopologyPolicy policy;
  const char* expected;  // "": refused
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

using enum TopologyPolicy;

// Two nodes of two cores, {0,4} {1,5} and {2,6} {3,7}; 0 is reserved.
const Row kRows[] = {
    {"without_a_device_the_emptiest_will_do", "", "1", kBestEffort, "4"},
    {"near_its_device", "0000:82:00.0", "1", kBestEffort, "2"},
    {"near_its_device_by_every_policy", "0000:82:00.0", "2", kSingleNumaNode, "2,6"},
    {"the_policy_none_has_no_say", "0000:82:00.0", "1", kNone, "4"},
    {"as_near_as_there_is_room", "0000:03:00.0", "4", kBestEffort, "1-2,4-5"},
    {"or_not_at_all", "0000:03:00.0", "4", kRestricted, ""},
    {"two_devices_on_one_node", "0000:82:00.0, 0000:82:00.1", "2", kRestricted, "2,6"},
    {"two_devices_that_are_apart_cannot_both_be_near", "0000:03:00.0,0000:82:00.0", "1",
     kSingleNumaNode, ""},
    {"or_one_of_them_is", "0000:03:00.0,0000:82:00.0", "1", kBestEffort, "4"},
    {"a_device_that_is_not_there_does_not_count", "0000:ff:00.0", "1", kSingleNumaNode, "4"},
    {"a_node_without_cpus_stands_for_its_neighbour", "0000:c1:00.0", "1", kRestricted, "2"},
};

class NearDevices : public testing::TestWithParam<Row> {};

TEST_P(NearDevices, HasTheExpectedCpus) {
  const Row& row = GetParam();
  const Topology regular = machine({.sockets = 2, .cores_per_node = 2});
  const Topology topology = Topology::of({regular.places().begin(), regular.places().end()},
                                         {{10, 20, 40}, {20, 10, 12}, {40, 12, 10}})
                                .value();
  const StaticPolicy policy = StaticPolicy::of({.topology = topology,
                                                .reservation = {.cpus = CpuSet{0}},
                                                .topology_rules = {.policy = row.policy},
                                                .devices = {{"0000:03:00.0", 0},
                                                            {"0000:82:00.0", 1},
                                                            {"0000:82:00.1", 1},
                                                            {"0000:c1:00.0", 2}}})
                                  .value();
  Pod pod = pod_of("a", {}, {container("c", row.cpu)});
  if (*row.devices) pod.annotations.emplace(kNearDevicesAnnotation, row.devices);
  const auto state = admit(policy, policy.initial(), pod);
  const CpuSet* const cpus = state ? exclusive_cpus(*state, "a", "c") : nullptr;
  EXPECT_EQ(cpus ? cpus->format() : "", row.expected);
}

INSTANTIATE_TEST_SUITE_P(Rows, NearDevices, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

TEST(NearDevices, SharingPodsAreNotRefused) {
  const StaticPolicy policy =
      StaticPolicy::of({.topology = machine({.sockets = 2, .cores_per_node = 2}),
                        .reservation = {.cpus = CpuSet{0}},
                        .topology_rules = {.policy = kSingleNumaNode},
                        .devices = {{"a", 0}, {"b", 1}}})
          .value();
  Pod pod = pod_of("a", {}, {container("c", "500m")});
  pod.annotations.emplace(kNearDevicesAnnotation, "a,b");
  EXPECT_TRUE(admit(policy, policy.initial(), pod));
}

}  // namespace
}  // namespace headroom
