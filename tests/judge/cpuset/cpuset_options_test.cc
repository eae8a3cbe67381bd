// SPDX-License-Identifier: Apache-2.0
// What the static policy may be configured to; everything wrong is named at once.
#include "judge/cpuset/cpuset_machine.h"
#include "judge/cpuset/policy/policy_options.h"
#include "judge/cpuset/policy/static_policy.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Options = std::map<std::string, std::string>;

TEST(CpuOptions, AreParsedAsByTheKubelet) {
  for (const char* const yes : {"1", "t", "T", "TRUE", "true", "True"})
    EXPECT_TRUE(parse_cpu_options({{"full-pcpus-only", yes}})->full_pcpus_only);
  for (const char* const no : {"0", "f", "F", "FALSE", "false", "False"})
    EXPECT_FALSE(parse_cpu_options({{"full-pcpus-only", no}})->full_pcpus_only);
  EXPECT_EQ(*parse_cpu_options({}), CpuPolicyOptions{});
  EXPECT_TRUE(parse_cpu_options({{"align-by-socket", "true"}}, {.alpha = true})->align_by_socket);
}

TEST(CpuOptions, EveryErrorIsReported) {
  const auto parsed = parse_cpu_options({{"align-by-socket", "true"},
                                         {"distribute-cpus-across-numa", "maybe"},
                                         {"full-pcpus-only", "yes"},
                                         {"full-speed", "true"}},
                                        {.alpha = false, .beta = false});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error(),
            (PolicyErrors{
                "CPU Manager Policy Alpha-level Options not enabled, but option "
                "\"align-by-socket\" provided",
                "CPU Manager Policy Beta-level Options not enabled, but option "
                "\"distribute-cpus-across-numa\" provided",
                "bad value for option \"distribute-cpus-across-numa\": strconv.ParseBool: parsing "
                "\"maybe\": invalid syntax",
                "bad value for option \"full-pcpus-only\": strconv.ParseBool: parsing \"yes\": "
                "invalid syntax",
                "unknown CPU Manager Policy option: \"full-speed\"",
            }));
}

std::string clash(const std::string& one, const std::string& other) {
  return "static policy options " + one + " and " + other + " can not be used at the same time";
}

TEST(CpuOptions, EveryConflictIsReported) {
  const Topology more_sockets_than_nodes = Topology::of({{0, 0, 0, 0, 0}, {1, 1, 1, 0, 0}}).value();
  const CpuPolicyOptions all{.full_pcpus_only = true,
                             .distribute_across_numa = true,
                             .align_by_socket = true,
                             .distribute_across_cores = true,
                             .strict_reservation = true,
                             .prefer_align_by_uncore = true};
  const auto policy =
      StaticPolicy::of({.topology = more_sockets_than_nodes,
                        .options = all,
                        .reservation = {.count = 0},
                        .topology_rules = {.policy = TopologyPolicy::kSingleNumaNode}});
  ASSERT_FALSE(policy);
  EXPECT_EQ(
      policy.error(),
      (PolicyErrors{
          clash("full-pcpus-only", "distribute-cpus-across-cores"),
          clash("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
          clash("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
          clash("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
          "Topolgy manager single-numa-node policy is incompatible with CPUManager "
          "align-by-socket policy option",
          "Align by socket is not compatible with hardware where number of sockets are more than "
          "number of NUMA",
          "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than "
          "zero",
      }));
}

TEST(Reservation, IsWholeCpus) {
  for (const auto& [milli, cpus] : std::vector<std::pair<std::int64_t, int>>{
           {0, 0}, {1, 1}, {999, 1}, {1000, 1}, {1001, 2}, {2500, 3}, {-5, 0}})
    EXPECT_EQ(reservation_of(MilliCpu{milli}).count, cpus) << milli;
}

TEST(Reservation, IsLimitedToExistingCpus) {
  struct Case {
    const char* name;
    CpuReservation reservation;
    const char* reserved;  // or the complaint
  };
  const Topology topology = machine({.cores_per_node = 4, .threads = 2});
  for (const Case& c :
       {Case{"a_whole_core_first", {.count = 2}, "0,4"}, Case{"rounded_up", {.count = 3}, "0-1,4"},
        Case{"a_list_is_taken_as_it_is", {.count = 1, .cpus = CpuSet{1, 6}}, "1,6"},
        Case{"a_list_that_is_not_there",
             {.cpus = CpuSet{7, 8, 9}},
             "reservedSystemCPUs \"8-9\" are not among this machine's CPUs \"0-7\""},
        Case{"more_than_there_are",
             {.count = 9},
             "unable to reserve the required amount of CPUs: not enough cpus available to satisfy "
             "request: requested=9, available=8"}}) {
    const auto policy = StaticPolicy::of({.topology = topology, .reservation = c.reservation});
    EXPECT_EQ(policy ? policy->reserved().format() : policy.error().front(), c.reserved) << c.name;
  }
}

}  // namespace
}  // namespace headroom
