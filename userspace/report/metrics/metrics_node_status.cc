// SPDX-License-Identifier: Apache-2.0
// headroom_node_*: the node's status, as kube-state-metrics would export it for a Node.
#include "judge/admission/taints.h"
#include "report/metrics/metric_family.h"
#include "report/metrics/metrics.h"
#include "report/view/node_status.h"

namespace headroom::report {
namespace {

std::string_view unit_of(std::string_view resource) {
  if (resource == "cpu") return "core";
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return bytes ? "byte" : "integer";
}

double amount_of(std::string_view resource, const Quantity& quantity) {
  if (resource == "cpu") return static_cast<double>(quantity.milli_value()) / 1000;
  return static_cast<double>(quantity.value());
}

void add_resources(std::string_view name, std::string_view help, const ResourceList& list,
                   Families& families) {
  auto family = MetricFamilyBuilder::gauge(name, help);
  for (const auto& [resource, quantity] : list)
    family.add(amount_of(resource, quantity),
               {{"resource", resource}, {"unit", unit_of(resource)}});
  family.append_to(families);
}

}  // namespace

void add_status_families(const NodeStatus& status, Families& families) {
  auto condition =
      MetricFamilyBuilder::gauge("headroom_node_condition", "1: the status of the condition.");
  for (std::size_t i = 0; i < kConditions; ++i) {
    const bool holds = status.conditions[i].holds;
    condition.add(holds ? 1.0 : 0.0, {{"condition", kConditionNames[i]}, {"status", "true"}});
    condition.add(holds ? 0.0 : 1.0, {{"condition", kConditionNames[i]}, {"status", "false"}});
  }
  condition.append_to(families);
  auto taint = MetricFamilyBuilder::gauge("headroom_node_taint", "1: the node bears the taint.");
  for (const Taint& each : all_taints(status.state))
    taint.add(1.0, {{"effect", name(each.effect)}, {"key", each.key}, {"value", each.value}});
  taint.append_to(families);
  add_resources("headroom_node_capacity", "What the node has.", status.capacity, families);
  add_resources("headroom_node_allocatable", "What of it pods may have.", status.allocatable,
                families);
  add_resources("headroom_node_reserved", "What of it is kept from pods.", status.reserved,
                families);
  add_resources("headroom_node_requested", "What active pods were promised.", status.requested,
                families);
  add_resources("headroom_node_limits", "What they may use at the most, as far as limited.",
                status.limits, families);
}

}  // namespace headroom::report
