// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/node_match.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace headroom {
namespace {

using Operator = LabelRequirement::Operator;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool compares(const LabelRequirement& requirement, const std::string& label) {
  const auto have = whole(label);
  const auto bound = requirement.values.empty() ? std::nullopt : whole(requirement.values[0]);
  if (!have || !bound) return false;
  return requirement.op == Operator::kGt ? *have > *bound : *have < *bound;
}

// A label that is not there is in no list, and is not something else either.
bool holds(const LabelRequirement& requirement, const std::string* label) {
  const auto& values = requirement.values;
  const bool listed = label && std::find(values.begin(), values.end(), *label) != values.end();
  switch (requirement.op) {
    case Operator::kIn:
      return listed;
    case Operator::kNotIn:
      return !listed;
    case Operator::kExists:
      return label != nullptr;
    case Operator::kDoesNotExist:
      return label == nullptr;
    case Operator::kGt:
    case Operator::kLt:
      return label && compares(requirement, *label);
  }
  return false;
}

bool is_wildcard_address(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || address == "::";
}

}  // namespace

bool matches(const NodeTerm& term, const NodeState& node) {
  if (term.labels.empty() && term.fields.empty()) return false;
  const auto label_holds = [&](const LabelRequirement& requirement) {
    const auto label = node.labels.find(requirement.key);
    return holds(requirement, label == node.labels.end() ? nullptr : &label->second);
  };
  const auto field_holds = [&](const LabelRequirement& requirement) {
    return requirement.key == "metadata.name" && holds(requirement, &node.name);
  };
  return std::all_of(term.labels.begin(), term.labels.end(), label_holds) &&
         std::all_of(term.fields.begin(), term.fields.end(), field_holds);
}

bool selects(const Placement& placement, const NodeState& node) {
  for (const auto& [key, value] : placement.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  const auto& terms = placement.required;
  return !terms || std::any_of(terms->begin(), terms->end(),
                               [&](const NodeTerm& term) { return matches(term, node); });
}

bool conflict(const HostPort& a, const HostPort& b) {
  return a.port == b.port && a.protocol == b.protocol &&
         (a.address == b.address || is_wildcard_address(a.address) ||
          is_wildcard_address(b.address));
}

bool ports_free(const PodOnNode& pod, const NodeState& node) {
  for (const PodOnNode& other : node.pods) {
    if (!pod.uid.empty() && other.uid == pod.uid) continue;
    for (const HostPort& taken : other.host_ports)
      for (const HostPort& wanted : pod.host_ports)
        if (conflict(taken, wanted)) return false;
  }
  return true;
}

}  // namespace headroom
