// SPDX-License-Identifier: Apache-2.0
// What every provider's hints merge to, and whether the pod is admitted.
#include "judge/cpuset/hints/hint_merge.h"

#include "judge/vectors/hint_json.h"
#include "judge/vectors/lines.h"

#include <vector>

namespace headroom::vectors {
namespace {

class HintMergeVectors : public VectorTest {};

ProviderHints provider_of(const nlohmann::json& object) {
  ProviderHints hints;
  if (object.is_null()) return hints;
  for (const auto& [resource, list] : object.items())
    hints[resource] = list.is_null() ? std::nullopt : std::optional(hints_of(list));
  return hints;
}

TEST_P(HintMergeVectors, Agree) {
  const auto policy = topology_policy_named(text("policy"));
  ASSERT_TRUE(policy);
  NumaMap numa{.nodes = {},
               .distances = line().at("distances").get<std::vector<std::vector<int>>>()};
  for (int node = 0; node < line().at("numa_nodes").get<int>(); ++node)
    numa.nodes = numa.nodes | NodeSet::of(node);
  std::vector<ProviderHints> providers;
  for (const auto& provider : line().at("providers"))
    providers.push_back(provider_of(provider));
  const MergedHint merged = merge_hints(
      {.policy = *policy, .prefer_closest_numa = line().at("prefer_closest").get<bool>()}, numa,
      providers);
  EXPECT_EQ(written(merged.best), written(hint_of(line().at("best"))));
  EXPECT_EQ(merged.admit, line().at("admit"));
}

INSTANTIATE_TEST_SUITE_P(Lines, HintMergeVectors, testing::ValuesIn(lines_of("hint_merge.jsonl")),
                         case_name);

}  // namespace
}  // namespace headroom::vectors
