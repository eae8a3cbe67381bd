// SPDX-License-Identifier: Apache-2.0
// Tolerations against taints (Kubernetes 1.36). Gt and Lt are compared here whatever the feature
// gate TaintTolerationComparisonOperators says: with it off, no API server lets such a pod in.
#include "judge/admission/scheduler.h"
#include "judge/admission/taints.h"
#include "judge/vectors/lines.h"

#include <algorithm>
#include <vector>

namespace headroom::vectors {
namespace {

using Json = nlohmann::json;
using Operator = Toleration::Operator;

std::string word(const Json& of, const char* key) {
  return of.value(key, std::string());
}

Taint taint_of(const Json& json) {
  return {.key = word(json, "key"),
          .value = word(json, "value"),
          .effect = taint_effect_named(word(json, "effect")).value()};
}

// Nothing where the operator or the effect is none that there is: it tolerates nothing.
std::optional<Toleration> toleration_of(const Json& json) {
  Toleration toleration{.key = word(json, "key"), .value = word(json, "value")};
  const std::string op = word(json, "operator"), effect = word(json, "effect");
  if (op == "Exists")
    toleration.op = Operator::kExists;
  else if (op == "Gt")
    toleration.op = Operator::kGt;
  else if (op == "Lt")
    toleration.op = Operator::kLt;
  else if (!op.empty() && op != "Equal")
    return std::nullopt;
  if (!effect.empty()) {
    toleration.effect = taint_effect_named(effect);
    if (!toleration.effect) return std::nullopt;
  }
  return toleration;
}

bool is_compared(const Json& tolerations) {
  return std::any_of(tolerations.begin(), tolerations.end(), [](const Json& each) {
    const std::string op = word(each, "operator");
    return op == "Gt" || op == "Lt";
  });
}

bool is_on(const Json& line) {
  return line.at("gates").at("TaintTolerationComparisonOperators").get<bool>();
}

class TolerationVectors : public VectorTest {};

TEST_P(TolerationVectors, Agree) {
  const Taint taint = taint_of(line().at("taint"));
  const Json& tolerations = line().at("tolerations");
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    if (!is_on(line()) && is_compared(Json::array({tolerations[i]}))) continue;
    const auto toleration = toleration_of(tolerations[i]);
    EXPECT_EQ(toleration && tolerates(*toleration, taint), line().at("each")[i].get<bool>())
        << tolerations[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, TolerationVectors,
                         testing::ValuesIn(lines_of("toleration_136.jsonl")), case_name);

class UntoleratedTaintVectors : public VectorTest {};

TEST_P(UntoleratedTaintVectors, Agree) {
  if (!is_on(line()) && is_compared(line().at("tolerations"))) return;
  Pod pod;
  pod.declared_qos = QosClass::kBestEffort;
  for (const Json& each : line().at("tolerations"))
    if (auto toleration = toleration_of(each)) pod.placement.tolerations.push_back(*toleration);
  const Json& effects = line().at("effects_considered");
  Json first;
  for (const Json& each : line().at("taints")) {
    const bool considered =
        std::find(effects.begin(), effects.end(), each.at("effect")) != effects.end();
    if (considered && first.is_null() && !tolerates(pod, taint_of(each))) first = each;
  }
  EXPECT_EQ(first, line().at("first_untolerated"));
}

INSTANTIATE_TEST_SUITE_P(Lines, UntoleratedTaintVectors,
                         testing::ValuesIn(lines_of("untolerated_taint_136.jsonl")), case_name);

// Over the nodes that a pod may run on: 100 for the fewest PreferNoSchedule taints not tolerated.
class TaintScoreVectors : public VectorTest {};

TEST_P(TaintScoreVectors, Agree) {
  if (!is_on(line()) && is_compared(line().at("tolerations"))) return;
  Pod pod;
  pod.declared_qos = QosClass::kBestEffort;
  for (const Json& each : line().at("tolerations"))
    if (auto toleration = toleration_of(each)) pod.placement.tolerations.push_back(*toleration);
  std::vector<NodeState> nodes;
  for (const Json& each : line().at("nodes")) {
    NodeState& node = nodes.emplace_back();
    node.name = each.at("name").get<std::string>();
    node.allocatable = {{"pods", 110}};
    for (const Json& taint : each.at("taints"))
      node.taints.push_back(taint_of(taint));
  }
  const PlacementResult placed = select_node(pod, nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Json& expected = line().at("nodes")[i];
    const auto& scores = placed.nodes[i].scores;
    EXPECT_EQ(scores.has_value(), expected.at("feasible").get<bool>()) << nodes[i].name;
    EXPECT_EQ(scores ? Json(scores->taint_toleration) : Json(), expected.at("score"))
        << nodes[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Lines, TaintScoreVectors,
                         testing::ValuesIn(lines_of("taint_scores_136.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
