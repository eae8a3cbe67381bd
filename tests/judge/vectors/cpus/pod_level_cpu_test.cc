// SPDX-License-Identifier: Apache-2.0
// Pods with resources of their own under the static policy, through admission, with and without the
// kubelet's alpha gate PodLevelResourceManagers.
#include "act/cpus/cpu_checkpoint.h"
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
          .scope =
              line.at("topology_scope") == "pod" ? TopologyScope::kPod : TopologyScope::kContainer,
          .pod_level_managers = line.at("gates").at("PodLevelResourceManagers").get<bool>()}};
  const auto reserved = line.at("reserved_cpus").get<std::string>();
  if (!reserved.empty()) config.reservation.cpus = cpus_of(reserved);
  return config;
}

const char* name_of(CpuIsolation isolation) {
  switch (isolation) {
    case CpuIsolation::kHost:
      return "host";
    case CpuIsolation::kPod:
      return "pod";
    case CpuIsolation::kContainer:
      return "container";
  }
  return "";
}

std::vector<const Container*> containers_of(const Pod& pod) {
  std::vector<const Container*> all;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      all.push_back(&container);
  return all;
}

class PodLevelCpuVectors : public VectorTest {
 protected:
  void SetUp() override {
    VectorTest::SetUp();
    for (const json& each : line().at("pods"))
      pods_.emplace(each.at("name").get<std::string>(), pod_of(each, /*pod_level_enabled=*/true));
  }

  const Pod& pod_in(const json& step) const { return pods_.at(step.at("pod").get<std::string>()); }

  void run(const StaticPolicy& policy, const json& step) {
    const Pod& pod = pod_in(step);
    if (step.at("op") == "remove_container")
      state_ = release_cpus(state_, pod.uid, step.at("container").get<std::string>());
    else if (step.at("op") == "remove_pod")
      remove(pod);
    else
      admit_pod(policy, pod, step);
    expect_assigned(pod, step);
  }

  void remove(const Pod& pod) {
    std::vector<const Pod*> others;
    for (const auto& [name, each] : pods_)
      if (each.uid != pod.uid) others.push_back(&each);
    state_ = remove_stale(state_, others);
  }

  void admit_pod(const StaticPolicy& policy, const Pod& pod, const json& step) {
    expect_hints(policy, pod, step);
    const auto next = admit(policy, state_, pod);
    ASSERT_EQ(next.has_value(), step.at("admit").get<bool>());
    if (next) {
      state_ = *next;
      return;
    }
    const CpuRefusal& refusal = next.error().refusal;
    EXPECT_EQ(reason(refusal), step.at("reason"));
    // Of an error that is not one of its own, the kubelet's admission says more.
    EXPECT_EQ(reason(refusal) == "UnexpectedAdmissionError"
                  ? "Allocate failed due to " + message(refusal) + ", which is unexpected"
                  : message(refusal),
              step.at("message"));
  }

  void expect_assigned(const Pod& pod, const json& step) const {
    json cpusets = json::object();
    json isolation = json::object();
    for (const Container* const container : containers_of(pod)) {
      if (const CpuSet* const cpus = exclusive_cpus(state_, pod.uid, container->name))
        cpusets[container->name] = cpus->format();
      if (const auto is = cpu_isolation(state_, pod, *container); is != CpuIsolation::kHost)
        isolation[container->name] = name_of(is);
    }
    EXPECT_EQ(cpusets, step.value("cpusets", json::object()));
    EXPECT_EQ(isolation, step.value("isolation", json::object()));
    const auto pool = state_.pod_entries.find(pod.uid);
    EXPECT_EQ(pool == state_.pod_entries.end() ? "" : pool->second.format(),
              step.value("pod_cpuset", ""));
  }

  // The hints and what they merge to, of the pod or of one container after the other.
  void expect_hints(const StaticPolicy& policy, const Pod& pod, const json& step) const {
    if (!step.contains("hints_returned")) return;
    CpuState state = state_;
    bool first = true;
    for (const json& expected : step.at("hints_returned")) {
      const Container* container = nullptr;
      for (const Container* const each : containers_of(pod))
        if (each->name == expected.value("container", "")) container = each;
      const ProviderHints hints =
          container ? policy.hints(state, pod, *container) : policy.hints(state, pod);
      expect_equal(hints, expected);
      const MergedHint merged =
          merge_hints(policy.config().topology_rules, policy.topology().numa(), {&hints, 1});
      if (first && step.contains("affinity_chosen"))
        EXPECT_EQ(written(merged.best), written(hint_of(step.at("affinity_chosen"))));
      first = false;
      if (!container || !merged.admit) continue;
      if (auto next = policy.allocate(state, pod, *container, merged.best.nodes))
        state = *std::move(next);
    }
  }

  static void expect_equal(const ProviderHints& hints, const json& expected) {
    if (expected.contains("hint_count")) {
      EXPECT_EQ(hints.at("cpu")->size(), expected.at("hint_count"));
    } else if (expected.at("hints").is_null()) {
      EXPECT_TRUE(hints.empty());
    } else {
      ASSERT_TRUE(hints.contains("cpu"));
      EXPECT_EQ(written(*hints.at("cpu")), written(hints_of(expected.at("hints"))));
    }
  }

  // The kubelet gives the pod a second pool, or refuses it: here it keeps what it has. A container
  // that was removed gets its part of the pool again.
  void expect_same_when_readmitted(const StaticPolicy& policy, const Pod& pod) const {
    const auto again = admit(policy, state_, pod);
    ASSERT_TRUE(again) << message(again.error().refusal);
    EXPECT_EQ(again->default_set.format(), state_.default_set.format());
    EXPECT_EQ(again->pod_entries, state_.pod_entries);
    for (const auto& [uid, containers] : state_.entries)
      for (const auto& [name, cpus] : containers)
        EXPECT_EQ(exclusive_cpus(*again, uid, name)->format(), cpus.format());
  }

  void expect_checkpoint() const {
    const auto version = line().at("gates").at("PodLevelResourceManagers").get<bool>()
                             ? act::CheckpointVersion::kV3
                             : act::CheckpointVersion::kV2;
    const act::CpuCheckpoint checkpoint{.policy = "static", .state = state_};
    EXPECT_EQ(act::encode_checkpoint(checkpoint, version), text("checkpoint"));
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
    if (steps[i].contains("invalid_upstream"))
      return expect_same_when_readmitted(*policy, pod_in(steps[i]));
    run(*policy, steps[i]);
    EXPECT_EQ(state_.default_set.format(), steps[i].at("default"));
    if (!state_.default_set.empty()) EXPECT_EQ(policy->find_faults(state_).size(), 0U);
    if (HasFailure()) return;
  }
  if (line().contains("checkpoint")) expect_checkpoint();
}

INSTANTIATE_TEST_SUITE_P(Lines, PodLevelCpuVectors,
                         testing::ValuesIn(lines_of("pod_level_cpu_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
