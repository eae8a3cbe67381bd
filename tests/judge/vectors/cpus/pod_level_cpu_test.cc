// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own under the static policy, through admission. The lines are those
// in which the kubelet's alpha gate PodLevelResourceManagers is off, as it is by default.
#include "judge/cpuset/cpu_admission.h"
#include "judge/vectors/hint_json.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"
#include "judge/vectors/topology_json.h"

#include <map>
#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

using nlohmann::json;

StaticPolicyConfig config_of(const json& line) {
  const auto options = parse_cpu_options(
      line.at("options").get<std::map<std::string, std::string>>(), {.alpha = true, .beta = true});
  if (!options) ADD_FAILURE() << options.error().front();
  StaticPolicyConfig config{
      .topology = topology_named(line.at("topology").get<std::string>()),
      .options = *options,
      .reservation = {.count = line.at("num_reserved").get<int>()},
      .topology_rules = {
          .policy = *topology_policy_named(line.at("topology_policy").get<std::string>()),
          .scope = line.at("topology_scope") == "pod" ? TopologyScope::kPod
                                                      : TopologyScope::kContainer}};
  const auto reserved = line.at("reserved_cpus").get<std::string>();
  if (!reserved.empty()) config.reservation.cpus = cpus_of(reserved);
  return config;
}

class PodLevelCpuVectors : public VectorTest {
 protected:
  void SetUp() override {
    VectorTest::SetUp();
    for (const json& each : line().at("pods"))
      pods_.emplace(each.at("name").get<std::string>(), pod_of(each, /*pod_level_enabled=*/true));
  }

  void run(const StaticPolicy& policy, const json& step) {
    const Pod& pod = pods_.at(step.at("pod").get<std::string>());
    if (step.at("op") == "remove_container")
      state_ = release_cpus(state_, pod.uid, step.at("container").get<std::string>());
    else if (step.at("op") == "remove_pod")
      remove(pod);
    else
      admit_pod(policy, pod, step);
  }

  void remove(const Pod& pod) {
    std::vector<const Pod*> others;
    for (const auto& [name, each] : pods_)
      if (each.uid != pod.uid) others.push_back(&each);
    state_ = remove_stale(state_, others);
  }

  void admit_pod(const StaticPolicy& policy, const Pod& pod, const json& step) {
    const auto next = admit(policy, state_, pod);
    ASSERT_EQ(next.has_value(), step.at("admit").get<bool>());
    if (!next) {
      EXPECT_EQ(reason(next.error().refusal), step.at("reason"));
      EXPECT_EQ(message(next.error().refusal), step.at("message"));
      return;
    }
    state_ = *next;
    std::map<std::string, std::string> has;
    if (const auto containers = state_.entries.find(pod.uid); containers != state_.entries.end())
      for (const auto& [container, cpus] : containers->second)
        has.emplace(container, cpus.format());
    EXPECT_EQ(json(has), step.value("cpusets", json::object()));
  }

  std::map<std::string, Pod> pods_;
  CpuState state_;
};

TEST_P(PodLevelCpuVectors, Agree) {
  const auto policy = StaticPolicy::of(config_of(line()));
  ASSERT_TRUE(policy) << policy.error().front();
  EXPECT_EQ(policy->reserved().format(), text("reserved"));
  state_ = policy->initial();
  EXPECT_EQ(state_.default_set.format(), text("initial_default"));
  const json& steps = line().at("steps");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i) + ": " + steps[i].dump());
    if (steps[i].contains("invalid_upstream")) return;
    run(*policy, steps[i]);
    EXPECT_EQ(state_.default_set.format(), steps[i].at("default"));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, PodLevelCpuVectors,
                         testing::ValuesIn(lines_of("pod_level_cpu_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
