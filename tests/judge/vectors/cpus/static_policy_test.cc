// SPDX-License-Identifier: Apache-2.0
// Pods that come and go under the static policy: what each gets, and what stays shared.
#include "judge/cpuset/policy/static_policy.h"

#include "judge/vectors/hint_json.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/topology_json.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace headroom::vectors {
namespace {

using nlohmann::json;

// A Guaranteed pod of one container.
Pod pod_named(const std::string& name, int cpus) {
  Pod pod;
  pod.uid = pod.name = name;
  const ResourceList resources{{"cpu", Quantity::of(cpus)}, {"memory", Quantity::of(1 << 20)}};
  pod.containers = {{.name = "c", .requests = resources, .limits = resources}};
  return pod;
}

StaticPolicyConfig config_of(const json& line) {
  const auto options = parse_cpu_options(
      line.at("options").get<std::map<std::string, std::string>>(), {.alpha = true, .beta = true});
  if (!options) ADD_FAILURE() << options.error().front();
  const auto policy = topology_policy_named(line.at("topology_policy").get<std::string>());
  if (!policy) ADD_FAILURE() << "unknown topology policy";
  StaticPolicyConfig config{
      .topology = topology_named(line.at("topology").get<std::string>()),
      .options = *options,
      .reservation = {.count = line.at("num_reserved").get<int>()},
      .topology_rules = {.policy = *policy,
                         .prefer_closest_numa = line.at("prefer_closest").get<bool>()}};
  const auto reserved = line.at("reserved_cpus").get<std::string>();
  if (!reserved.empty()) config.reservation.cpus = cpus_of(reserved);
  return config;
}

class StaticPolicyVectors : public VectorTest {
 protected:
  void allocate(const StaticPolicy& policy, const json& step) {
    const Pod pod = pod_named(step.at("pod").get<std::string>(), step.at("cpus").get<int>());
    std::optional<NodeSet> affinity;
    if (step.contains("merged")) {
      const ProviderHints hints = policy.hints(state_, pod, pod.containers[0]);
      const MergedHint merged =
          merge_hints(policy.config().topology_rules, policy.topology().numa(), {&hints, 1});
      if (comparing_) expect_hints(hints.at("cpu"), merged, step);
      if (!merged.admit) return;
      affinity = merged.best.nodes;
    }
    const CpuState before = state_;
    const auto next = policy.allocate(state_, pod, pod.containers[0], affinity);
    if (next) state_ = *next;
    if (next) expect_valid(policy, before, pod);
    // On hybrid machines upstream hands out reserved CPUs, which its vectors do not flag: from
    // there on only what must hold of any answer is asked.
    if (step.contains("cpuset") &&
        cpus_of(step.at("cpuset").get<std::string>()).intersects(policy.reserved()))
      comparing_ = false;
    if (!comparing_) return;
    ASSERT_EQ(next.has_value(), step.contains("cpuset"));
    if (next)
      EXPECT_EQ(exclusive_cpus(state_, pod.uid, "c")->format(), step.at("cpuset"));
    else
      EXPECT_EQ(message(next.error()), step.at("error"));
  }

  static void expect_hints(const std::optional<HintList>& hints, const MergedHint& merged,
                           const json& step) {
    ASSERT_TRUE(hints);
    if (step.contains("hints"))
      EXPECT_EQ(written(*hints), written(hints_of(step.at("hints"))));
    else
      EXPECT_EQ(hints->size(), step.at("hint_count"));
    EXPECT_EQ(written(merged.best), written(hint_of(step.at("merged"))));
    EXPECT_EQ(merged.admit, step.at("admit"));
  }

  void expect_valid(const StaticPolicy& policy, const CpuState& before, const Pod& pod) const {
    const CpuSet& cpus = *exclusive_cpus(state_, pod.uid, "c");
    EXPECT_EQ(Quantity::of(cpus.size()), pod.containers[0].requests.at("cpu"));
    EXPECT_TRUE(cpus.subset_of(before.default_set - policy.reserved())) << cpus.format();
    EXPECT_EQ(state_.default_set, before.default_set - cpus);
  }

  CpuState state_;
  bool comparing_ = true;
};

TEST_P(StaticPolicyVectors, Agree) {
  const auto policy = StaticPolicy::of(config_of(line()));
  if (line().contains("error")) {
    ASSERT_FALSE(policy);
    // Upstream stops at the first thing that is wrong; ours names all of them.
    EXPECT_EQ(std::ranges::count(policy.error(), text("error")), 1) << policy.error().front();
    return;
  }
  ASSERT_TRUE(policy) << policy.error().front();
  EXPECT_EQ(policy->reserved().format(), text("reserved"));
  state_ = policy->initial();
  EXPECT_EQ(state_.default_set.format(), text("initial_default"));
  const json& steps = line().at("steps");
  const std::size_t invalid_from = line().value("invalid_upstream_from_step", steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i) + ": " + steps[i].dump());
    comparing_ = comparing_ && i < invalid_from;
    if (steps[i].at("op") == "remove")
      state_ = release_cpus(state_, steps[i].at("pod").get<std::string>(), "c");
    else
      allocate(*policy, steps[i]);
    if (comparing_) {
      EXPECT_EQ(state_.default_set.format(), steps[i].at("default"));
    }
    // Under strict-cpu-reservation the shared pool can be given away to the last CPU: a state the
    // kubelet itself would then refuse to start from.
    if (!state_.default_set.empty()) {
      EXPECT_TRUE(policy->find_faults(state_).empty()) << policy->find_faults(state_).front().what;
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, StaticPolicyVectors,
                         testing::ValuesIn(lines_of("static_policy.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
