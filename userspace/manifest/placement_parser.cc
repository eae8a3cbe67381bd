// SPDX-License-Identifier: Apache-2.0
#include "manifest/pod_fields.h"

#include <array>
#include <limits>
#include <utility>

namespace headroom::observe {
namespace {

using config::Choice;
using config::Section;
using Operator = LabelRequirement::Operator;

constexpr std::array<Choice<Operator>, 6> kOperators{{{"In", Operator::kIn},
                                                      {"NotIn", Operator::kNotIn},
                                                      {"Exists", Operator::kExists},
                                                      {"DoesNotExist", Operator::kDoesNotExist},
                                                      {"Gt", Operator::kGt},
                                                      {"Lt", Operator::kLt}}};
constexpr std::array<Choice<Toleration::Operator>, 4> kTolerationOperators{
    {{"Equal", Toleration::Operator::kEqual},
     {"Exists", Toleration::Operator::kExists},
     {"Gt", Toleration::Operator::kGt},
     {"Lt", Toleration::Operator::kLt}}};
constexpr std::array<Choice<TaintEffect>, 3> kTolerationEffects{
    {{"NoSchedule", TaintEffect::kNoSchedule},
     {"PreferNoSchedule", TaintEffect::kPreferNoSchedule},
     {"NoExecute", TaintEffect::kNoExecute}}};
constexpr std::array<Choice<HostPort::Protocol>, 3> kProtocols{
    {{"TCP", HostPort::Protocol::kTcp},
     {"UDP", HostPort::Protocol::kUdp},
     {"SCTP", HostPort::Protocol::kSctp}}};

// Absent and empty are one here, as they are in the API.
bool has_nonempty(const Section& section, std::string_view key) {
  return section.has(key) && section.string(key) != "";
}

void check_operator_values(const Section& section, const LabelRequirement& requirement) {
  const std::size_t count = requirement.values.size();
  switch (requirement.op) {
    case Operator::kIn:
    case Operator::kNotIn:
      if (count == 0)
        section.add_error_at(section.line_of("values"), section.path_of("values") +
                                                            ": expected at least one, as the "
                                                            "operator is In or NotIn");
      return;
    case Operator::kExists:
    case Operator::kDoesNotExist:
      if (count != 0)
        section.add_error("values", "expected none, as the operator is Exists or DoesNotExist");
      return;
    case Operator::kGt:
    case Operator::kLt:
      if (count != 1)
        section.add_error_at(
            section.line_of("values"),
            section.path_of("values") + ": expected exactly one, as the operator is Gt or Lt");
      return;
  }
}

LabelRequirement read_requirement(const Section& section) {
  LabelRequirement requirement;
  requirement.key = section.required_string("key");
  const auto op = section.choice<Operator>("operator", kOperators);
  if (!section.has("operator"))
    section.add_error_at(section.line(), "missing " + section.path_of("operator"));
  if (auto words = section.list_of_strings("values"))
    for (config::LocatedText& word : *words)
      requirement.values.push_back(std::move(word.text));
  if (!op) return requirement;
  requirement.op = *op;
  check_operator_values(section, requirement);
  return requirement;
}

std::vector<LabelRequirement> read_requirements(const Section& term, std::string_view key) {
  std::vector<LabelRequirement> requirements;
  if (const auto sections = term.list_of_maps(key))
    for (const Section& section : *sections)
      requirements.push_back(read_requirement(section));
  return requirements;
}

NodeTerm read_term(const Section& section) {
  NodeTerm term{read_requirements(section, "matchExpressions"),
                read_requirements(section, "matchFields")};
  for (const LabelRequirement& field : term.fields)
    if (!field.key.empty() && field.key != "metadata.name")
      section.add_error("matchFields",
                        "expected metadata.name, the only field, found \"" + field.key + "\"");
  return term;
}

PreferredTerm read_preferred(const Section& section) {
  PreferredTerm preferred;
  if (const auto weight = section.integer("weight", 1, 100))
    preferred.weight = static_cast<std::int32_t>(*weight);
  else if (!section.has("weight"))
    section.add_error_at(section.line(), "missing " + section.path_of("weight"));
  if (const auto term = section.map("preference")) preferred.term = read_term(*term);
  return preferred;
}

void read_node_affinity(const Section& affinity, Placement& placement) {
  if (const auto rule = affinity.map("requiredDuringSchedulingIgnoredDuringExecution")) {
    placement.required.emplace();
    if (const auto terms = rule->list_of_maps("nodeSelectorTerms"))
      for (const Section& term : *terms)
        placement.required->push_back(read_term(term));
    if (!rule->has("nodeSelectorTerms"))
      rule->add_error_at(rule->line(), "missing " + rule->path_of("nodeSelectorTerms"));
  }
  if (const auto terms = affinity.list_of_maps("preferredDuringSchedulingIgnoredDuringExecution"))
    for (const Section& term : *terms)
      placement.preferred.push_back(read_preferred(term));
}

void check_toleration(const Section& section, const Toleration& toleration) {
  const bool exists = toleration.op == Toleration::Operator::kExists;
  const bool compares =
      toleration.op == Toleration::Operator::kGt || toleration.op == Toleration::Operator::kLt;
  if (exists && !toleration.value.empty())
    section.add_error("value", "expected none, as the operator is Exists");
  if (compares && !toleration_integer(toleration.value))
    section.add_error_at(
        section.line_of("value"),
        section.path_of("value") + ": expected an integer, as the operator is Gt or Lt");
  if (toleration.key.empty() && !exists)
    section.add_error_at(section.line(), section.path_of("key") +
                                             ": without a key the operator must be Exists, which "
                                             "tolerates every taint");
  if (toleration.seconds && toleration.effect != TaintEffect::kNoExecute)
    section.add_error("tolerationSeconds", "only for the effect NoExecute");
}

Toleration read_toleration(const Section& section) {
  Toleration toleration;
  toleration.key = section.string("key").value_or("");
  toleration.value = section.string("value").value_or("");
  std::optional op(Toleration::Operator::kEqual);
  if (has_nonempty(section, "operator"))
    op = section.choice<Toleration::Operator>("operator", kTolerationOperators);
  if (has_nonempty(section, "effect"))
    toleration.effect = section.choice<TaintEffect>("effect", kTolerationEffects);
  if (const auto seconds = section.integer("tolerationSeconds"))
    toleration.seconds = std::chrono::seconds(*seconds);
  const bool effect_is_clear = toleration.effect.has_value() || !has_nonempty(section, "effect");
  if (!op || !effect_is_clear) {  // an error was added
    toleration.op = Toleration::Operator::kUnknown;
    return toleration;
  }
  toleration.op = *op;
  check_toleration(section, toleration);
  return toleration;
}

}  // namespace

Labels read_labels(const Section& section, std::string_view key) {
  Labels labels;
  if (auto words = section.map_of_strings(key))
    for (config::LocatedText& word : *words)
      labels.emplace(std::move(word.key), std::move(word.text));
  return labels;
}

void read_placement(const Section& spec, Placement& placement) {
  if (const auto name = spec.string("nodeName")) placement.node_name = *name;
  placement.node_selector = read_labels(spec, "nodeSelector");
  if (const auto affinity = spec.map("affinity"))
    if (const auto node = affinity->map("nodeAffinity")) read_node_affinity(*node, placement);
  if (const auto sections = spec.list_of_maps("tolerations"))
    for (const Section& section : *sections)
      placement.tolerations.push_back(read_toleration(section));
}

void read_host_ports(const Section& container, bool host_network, std::vector<HostPort>& ports) {
  const auto sections = container.list_of_maps("ports");
  if (!sections) return;
  constexpr std::int64_t kMax = std::numeric_limits<std::uint16_t>::max();
  for (const Section& section : *sections) {
    auto number = section.integer("hostPort", 0, kMax);
    const auto inside = section.integer("containerPort", 1, kMax);
    if (!section.has("hostPort") && host_network) number = inside;
    if (!number || *number == 0) continue;
    HostPort port{.port = static_cast<std::uint16_t>(*number)};
    if (const auto protocol = section.choice<HostPort::Protocol>("protocol", kProtocols))
      port.protocol = *protocol;
    port.address = section.string("hostIP").value_or("");
    ports.push_back(std::move(port));
  }
}

bool owned_by_daemon_set(const Section& metadata) {
  const auto owners = metadata.list_of_maps("ownerReferences");
  if (!owners) return false;
  for (const Section& owner : *owners)
    if (owner.string("kind") == "DaemonSet") return true;
  return false;
}

}  // namespace headroom::observe
