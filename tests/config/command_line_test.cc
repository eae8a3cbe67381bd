// SPDX-License-Identifier: Apache-2.0
// The kubelet's flags and ours: what they win over, and what is said of a bad one.
#include "config/flags/command_line.h"

#include "config/load/load.h"
#include "config/rows.h"
#include "config/temp_dir.h"
#include "config/thresholds_as_text.h"

#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::config {
namespace {

using namespace std::chrono_literals;

// The file they meet: one hard threshold, one soft, in enforce mode.
constexpr const char* kFile = R"(apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
evictionHard: {memory.available: 1Gi}
evictionSoft: {nodefs.available: 20%}
evictionSoftGracePeriod: {nodefs.available: 1m}
evictionMaxPodGracePeriod: 30
evictionPressureTransitionPeriod: 1m
enforceNodeAllocatable: []
headroom: {mode: enforce, listen: ""}
)";

tl::expected<Config, Diagnostics> load_with(const std::vector<std::string>& flags) {
  test::TempDir dir;
  std::vector<std::string> words{"headroomd", "--config", dir.write("f", kFile)};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<const char*> argv;
  for (const std::string& word : words)
    argv.push_back(word.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data()).and_then(load);
}

std::vector<std::string> said(const tl::expected<Config, Diagnostics>& config) {
  std::vector<std::string> lines;
  if (!config)
    for (const Diagnostic& diagnostic : config.error())
      lines.push_back(to_string(diagnostic));
  return lines;
}

struct Good {
  const char* name;
  std::vector<std::string> flags;
  std::vector<std::string> thresholds;
};
void PrintTo(const Good& row, std::ostream* out) {
  *out << row.name;
}

class EvictionFlags : public testing::TestWithParam<Good> {};

TEST_P(EvictionFlags, OverrideTheFile) {
  const auto config = load_with(GetParam().flags);
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(test::thresholds_as_text(config->policy.thresholds), GetParam().thresholds);
}

const Good kGood[] = {
    {"none_leaves_the_file",
     {},
     {"kernel.memAvailable < 50Mi", "memory.available < 1Gi", "nodefs.available < 20% for 60s"}},
    {"hard_replaces_the_whole_map",
     {"--eviction-hard=pid.available<5%,imagefs.available<2Gi"},
     {"imagefs.available < 2Gi", "nodefs.available < 20% for 60s", "pid.available < 5%"}},
    {"given_twice_it_adds_up",
     {"--eviction-hard", "pid.available<5%", "--eviction-hard", "memory.available< 2Gi"},
     {"kernel.memAvailable < 50Mi", "memory.available < 2Gi", "nodefs.available < 20% for 60s",
      "pid.available < 5%"}},
    {"the_last_of_a_signal_stays",
     {"--eviction-hard=memory.available<2Gi,memory.available<3Gi"},
     {"kernel.memAvailable < 50Mi", "memory.available < 3Gi", "nodefs.available < 20% for 60s"}},
    {"empty_is_none", {"--eviction-hard="}, {"nodefs.available < 20% for 60s"}},
    {"empty_as_a_word_is_none", {"--eviction-hard", ""}, {"nodefs.available < 20% for 60s"}},
    {"soft_with_its_grace",
     {"--eviction-soft=memory.available<2Gi", "--eviction-soft-grace-period=memory.available=10s"},
     {"kernel.memAvailable < 50Mi", "memory.available < 1Gi", "memory.available < 2Gi for 10s"}},
    {"minimum_reclaim",
     {"--eviction-minimum-reclaim=memory.available=500Mi"},
     {"kernel.memAvailable < 50Mi", "memory.available < 1Gi, reclaim 500Mi",
      "nodefs.available < 20% for 60s"}},
    {"pods_have_their_own_threshold",
     {"--enforce-node-allocatable=pods,kube-reserved"},
     {"allocatableMemory.available < 1Gi", "kernel.memAvailable < 50Mi", "memory.available < 1Gi",
      "nodefs.available < 20% for 60s"}},
};
INSTANTIATE_TEST_SUITE_P(Good, EvictionFlags, testing::ValuesIn(kGood), test::RowName{});

TEST(Flags, TheOtherFlagsOverrideTheFileToo) {
  const auto config = load_with({"--eviction-max-pod-grace-period", "-1",
                                 "--eviction-pressure-transition-period=2m30s", "--mode", "enforce",
                                 "--mode=observe", "--listen=0.0.0.0:9750"});
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->policy.max_pod_grace, -1s);
  EXPECT_EQ(config->policy.pressure_transition, 150s);
  EXPECT_EQ(config->policy.mode, Mode::kObserve);
  EXPECT_EQ(config->listen, "0.0.0.0:9750");
}

TEST(Flags, SetTaintsLabelsAndPodLimits) {
  const auto config =
      load_with({"--register-with-taints=old:NoSchedule",
                 "--register-with-taints=dedicated=gpu:NoExecute,maybe:PreferNoSchedule",
                 "--node-labels=zone=a", "--node-labels", "disk=ssd,zone=b",
                 "--hostname-override=n1", "--max-pods=7", "--pods-per-core", "2",
                 "--local-storage-capacity-isolation=false", "--kernel-memcg-notification"});
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->taints, (std::vector<Taint>{{"dedicated", "gpu", TaintEffect::kNoExecute},
                                                {"maybe", "", TaintEffect::kPreferNoSchedule}}))
      << "the last list stands alone";
  EXPECT_EQ(config->node_labels, (Labels{{"disk", "ssd"}, {"zone", "b"}}));
  EXPECT_EQ(config->node_name, "n1");
  EXPECT_EQ(config->max_pods, 7);
  EXPECT_EQ(config->pods_per_core, 2);
  EXPECT_FALSE(config->policy.local_storage_isolation);
}

TEST(Flags, NoTaintsAreTheEmptyList) {
  const auto config = load_with({"--register-with-taints=a:NoSchedule", "--register-with-taints="});
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_TRUE(config->taints.empty());
}

TEST(Flags, AnEmptyListenTurnsTheEndpointOff) {
  const auto config = load_with({"--listen="});
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->listen, "");
}

TEST(Flags, ATransitionOfZeroIsTheDefault) {
  const auto config = load_with({"--eviction-pressure-transition-period=0s"});
  ASSERT_TRUE(config) << said(config)[0];
  EXPECT_EQ(config->policy.pressure_transition, 5min);
}

struct BadRow {
  const char* name;
  std::vector<std::string> flags;
  std::vector<std::string> diagnostics;
};
void PrintTo(const BadRow& row, std::ostream* out) {
  *out << row.name;
}

class BadFlags : public testing::TestWithParam<BadRow> {};

TEST_P(BadFlags, AreReported) {
  EXPECT_EQ(said(load_with(GetParam().flags)), GetParam().diagnostics);
}

const BadRow kBad[] = {
    {"unknown_ones_name_their_neighbours",
     {"--evction-hard=memory.available<1Gi", "--fnord", "extra"},
     {"unknown flag --evction-hard, did you mean --eviction-hard?", "unknown flag --fnord",
      "unexpected argument \"extra\""}},
    {"every_mistake_at_once",
     {"--eviction-hard=memory.available=1Gi", "--mode=on", "--listen=9750",
      "--eviction-max-pod-grace-period=30s", "--eviction-pressure-transition-period=-1s",
      "--enforce-node-allocatable=pods,pods"},
     {"--eviction-hard: \"memory.available=1Gi\": expected signal<value",
      "--eviction-max-pod-grace-period: expected a whole number of seconds (32 bits), found "
      "\"30s\"",
      "--eviction-pressure-transition-period: must not be negative",
      "--mode: expected observe or enforce, found \"on\"",
      "--listen: expected HOST:PORT such as 127.0.0.1:9750, or nothing for no endpoint, found "
      "\"9750\"",
      "--enforce-node-allocatable: enforceNodeAllocatable: pods is there twice"}},
    {"of_the_node",
     {"--register-with-taints=a=b:NoSchedule,a:NoSchedule,c-,d", "--node-labels=_=1,x",
      "--max-pods=-1", "--pods-per-core=many", "--local-storage-capacity-isolation=no",
      "--kernel-memcg-notification=perhaps"},
     {"--local-storage-capacity-isolation: expected true or false, found \"no\"",
      "--kernel-memcg-notification: expected true or false, found \"perhaps\"",
      "--register-with-taints: \"a:NoSchedule\": there is a=b:NoSchedule already",
      "--register-with-taints: \"c-\": there is nothing to remove yet",
      "--register-with-taints: \"d\": expected KEY=VALUE:EFFECT or KEY:EFFECT to add, KEY:EFFECT- "
      "or KEY- to remove, where EFFECT is NoSchedule, PreferNoSchedule or NoExecute",
      "--node-labels: \"x\": expected key=value",
      "--node-labels: the key \"_\" must be a name such as dedicated or example.com/dedicated: up "
      "to 63 letters, digits, '-', '_' and '.', which begin and end with a letter or digit",
      "--max-pods: expected a whole number, not negative (32 bits), found \"-1\"",
      "--pods-per-core: expected a whole number, not negative (32 bits), found \"many\""}},
};
INSTANTIATE_TEST_SUITE_P(Bad, BadFlags, testing::ValuesIn(kBad), test::RowName{});

TEST(Flags, ABadThresholdIsFoundAtItsFlag) {
  const auto config = load_with({"--eviction-hard=memory.available<1GB"});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error()[0].file, "--eviction-hard");
  EXPECT_EQ(config.error()[0].line, 0);
}

TEST(Flags, AMissingValueIsOneDiagnostic) {
  EXPECT_EQ(said(load_with({"--mode"})).size(), 1u);
}

// headroomd(8) against --help: every flag is in it.
TEST(Flags, AreInTheManual) {
  std::ifstream page("docs/headroomd.8");  // tests run in the root of the repository
  std::string text(std::istreambuf_iterator<char>(page), {});
  std::erase(text, '\\');
  std::istringstream words(help_text());
  std::size_t flags = 0;
  for (std::string word; words >> word;) {
    if (!word.starts_with("--")) continue;
    ++flags;
    const std::string flag = word.substr(0, word.find(','));
    EXPECT_NE(text.find(flag), std::string::npos) << flag;
  }
  EXPECT_GT(flags, 30u);
}

TEST(Flags, HelpVersionAndCheckTakeNoValue) {
  const char* argv[] = {"headroomd", "--help", "--version", "--check-config"};
  const auto line = parse_command_line(4, argv);
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->help && line->version && line->check_config);
  EXPECT_NE(help_text().find("--eviction-soft-grace-period"), std::string::npos);
}

}  // namespace
}  // namespace headroom::config
