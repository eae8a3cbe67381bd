// SPDX-License-Identifier: Apache-2.0
// CPU pinning as configured: the kubelet's keys and flags, headroom.cpus, and what is refused.
#include "config/files.h"
#include "config/flags/command_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace std::chrono_literals;
using test::load_text;
using test::said;
using Lines = std::vector<std::string>;
using Mode = CpusConfig::Mode;

constexpr const char* kStatic = "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n";

TEST(CpusConfig, IsOffByDefault) {
  const auto config = load_text("cpuManagerPolicy: static\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->cpus.mode, Mode::kOff);
  EXPECT_EQ(config->cpus.policy, CpusConfig::Policy::kStatic);
  EXPECT_EQ(config->cpus.reconcile_period, 10s);
  EXPECT_TRUE(config->cpus.guard_shared_pool);
}

TEST(CpusConfig, IsReadFromKubeletAndHeadroomKeys) {
  const auto config = load_text(R"(cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", strict-cpu-reservation: "1"}
cpuManagerReconcilePeriod: 3s
reservedSystemCPUs: 0-1,8
topologyManagerPolicy: restricted
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true", max-allowable-numa-nodes: "16"}
headroom:
  cpus: {mode: enforce, stateFile: /srv/cpus, excludeIsolated: true, partition: isolated,
         guardSharedPool: false}
)");
  ASSERT_TRUE(config) << said(config)[0];
  const CpusConfig& cpus = config->cpus;
  EXPECT_EQ(cpus.mode, Mode::kEnforce);
  EXPECT_EQ(cpus.options, (CpuPolicyOptions{.full_pcpus_only = true, .strict_reservation = true}));
  EXPECT_EQ(cpus.reconcile_period, 3s);
  ASSERT_TRUE(cpus.reserved);
  EXPECT_EQ(cpus.reserved->format(), "0-1,8");
  EXPECT_EQ(cpus.topology_policy, TopologyPolicy::kRestricted);
  EXPECT_EQ(cpus.topology_scope, TopologyScope::kPod);
  EXPECT_TRUE(cpus.prefer_closest_numa);
  EXPECT_EQ(cpus.state_file, "/srv/cpus");
  EXPECT_TRUE(cpus.exclude_isolated);
  EXPECT_EQ(cpus.partition, CpusConfig::Partition::kIsolated);
  EXPECT_FALSE(cpus.guard_shared_pool);
}

TEST(CpusConfig, UnquotedOffIsOff) {
  const auto config = load_text("headroom:\n  cpus: {mode: off}\n");
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->cpus.mode, Mode::kOff);
}

TEST(CpusConfig, AlphaOptionsNeedTheirFeatureGate) {
  const std::string align = "cpuManagerPolicyOptions: {align-by-socket: \"true\"}\n";
  EXPECT_TRUE(load_text(kStatic + align + "featureGates: {CPUManagerPolicyAlphaOptions: true}\n"));
  EXPECT_EQ(said(load_text(kStatic + align)),
            (Lines{"5: cpuManagerPolicyOptions: CPU Manager Policy Alpha-level Options not "
                   "enabled, but option \"align-by-socket\" provided: set "
                   "featureGates.CPUManagerPolicyAlphaOptions: true"}));
}

struct Wrong {
  const char* name;
  std::string text;
  Lines said;
};
void PrintTo(const Wrong& row, std::ostream* out) {
  *out << row.name;
}
const Wrong kWrong[] = {
    {"words_of_few",
     "cpuManagerPolicy: dynamic\ntopologyManagerPolicy: best\ntopologyManagerScope: node\n"
     "cpuManagerReconcilePeriod: -1s\nheadroom:\n  cpus: {mode: maybe, stateFile: x, cpus: 1}\n",
     {"3: cpuManagerPolicy: expected none or static, found \"dynamic\"",
      "4: topologyManagerPolicy: expected none, best-effort, restricted or single-numa-node, found "
      "\"best\"",
      "5: topologyManagerScope: expected container or pod, found \"node\"",
      "6: cpuManagerReconcilePeriod: must not be negative", "8: unknown key headroom.cpus.cpus",
      "8: headroom.cpus.mode: expected off, observe or enforce, found \"maybe\"",
      "8: headroom.cpus.stateFile: expected an absolute path, found \"x\""}},
    {"options_of_none",
     "cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\n",
     {"3: cpuManagerPolicyOptions: the policy none takes no options: set cpuManagerPolicy: static, "
      "or take them out"}},
    {"options_unknown_or_bad",
     std::string(kStatic) +
         "cpuManagerPolicyOptions:\n  full-pcpu-only: \"true\"\n  strict-cpu-reservation: "
         "\"yes\"\ntopologyManagerPolicyOptions:\n  prefer-closest: \"true\"\n  "
         "max-allowable-numa-nodes: \"4\"\n",
     {"6: cpuManagerPolicyOptions: unknown CPU Manager Policy option: \"full-pcpu-only\", did you "
      "mean full-pcpus-only?",
      "7: cpuManagerPolicyOptions: bad value for option \"strict-cpu-reservation\": "
      "strconv.ParseBool: parsing \"yes\": invalid syntax: expected \"true\" or \"false\"",
      "9: unknown option topologyManagerPolicyOptions.prefer-closest",
      "10: topologyManagerPolicyOptions.max-allowable-numa-nodes: expected a number, 8 or more, "
      "found \"4\""}},
    {"options_that_exclude_each_other",
     std::string(kStatic) +
         "cpuManagerPolicyOptions: {full-pcpus-only: \"true\", distribute-cpus-across-cores: "
         "\"true\"}\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}\n",
     {"5: cpuManagerPolicyOptions: static policy options full-pcpus-only and "
      "distribute-cpus-across-cores can not be used at the same time: take one of them out"}},
    {"nothing_reserved",
     "cpuManagerPolicy: static\nheadroom:\n  cpus: {mode: observe}\n",
     {"3: cpuManagerPolicy: the static policy needs CPUs that are reserved: set "
      "reservedSystemCPUs, or cpu in systemReserved or kubeReserved"}},
};

class CpusWrong : public testing::TestWithParam<Wrong> {};
TEST_P(CpusWrong, IsReportedAtOnce) {
  EXPECT_EQ(said(load_text(GetParam().text)), GetParam().said);
}
INSTANTIATE_TEST_SUITE_P(Rows, CpusWrong, testing::ValuesIn(kWrong),
                         [](const auto& row) { return row.param.name; });

tl::expected<Config, Diagnostics> load_with(const std::string& text,
                                            std::vector<std::string> flags) {
  test::TempDir dir;
  const std::string file = dir.write("f", test::kHead + text);
  std::vector<const char*> argv{"headroomd", "--config", file.c_str()};
  for (const std::string& flag : flags)
    argv.push_back(flag.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data()).and_then(load);
}

TEST(CpuFlags, OverrideTheFile) {
  const auto config =
      load_with(kStatic + std::string("cpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\n"),
                {"--cpu-manager-policy-options=strict-cpu-reservation=true",
                 "--cpu-manager-reconcile-period=5s", "--topology-manager-policy=best-effort",
                 "--topology-manager-scope=pod",
                 "--topology-manager-policy-options=prefer-closest-numa-nodes=true"});
  ASSERT_TRUE(config) << config.error()[0].what;
  EXPECT_EQ(config->cpus.options, CpuPolicyOptions{.strict_reservation = true});
  EXPECT_EQ(config->cpus.reconcile_period, 5s);
  EXPECT_EQ(config->cpus.topology_policy, TopologyPolicy::kBestEffort);
  EXPECT_EQ(config->cpus.topology_scope, TopologyScope::kPod);
  EXPECT_TRUE(config->cpus.prefer_closest_numa);
}

TEST(CpuFlags, InvalidOnesAreAllReported) {
  const auto config =
      load_with("", {"--cpu-manager-policy=dynamic", "--topology-manager-policy-options=closest",
                     "--cpu-manager-reconcile-period=0s"});
  ASSERT_FALSE(config);
  Lines lines;
  for (const Diagnostic& diagnostic : config.error())
    lines.push_back(to_string(diagnostic));
  EXPECT_EQ(lines, (Lines{"--cpu-manager-policy: expected one of none, static, found \"dynamic\"",
                          "--topology-manager-policy-options: \"closest\": expected option=value",
                          "--cpu-manager-reconcile-period: must be more than zero"}));
}

}  // namespace
}  // namespace headroom::config
