// SPDX-License-Identifier: Apache-2.0
#include "ctl/status/resource_table.h"

#include <headroom/quantity.h>

#include <optional>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

std::optional<Quantity> quantity_in(const Resources& list, const std::string& resource) {
  const auto found = list.find(resource);
  if (found == list.end()) return std::nullopt;
  const auto quantity = Quantity::parse(found->second);
  return quantity ? std::optional(*quantity) : std::nullopt;
}

bool is_bytes(const std::string& resource) {
  return resource == "memory" || resource == "ephemeral-storage" ||
         resource.starts_with("hugepages-");
}

std::string amount_of(const Resources& list, const std::string& resource) {
  const auto quantity = quantity_in(list, resource);
  if (!quantity) return "-";
  return is_bytes(resource) ? bytes(quantity->value()) : quantity->canonical();
}

// The share of allocatable; above 100 % the node is overcommitted.
Cell share_of(const NodeResources& node, const Resources& list, const std::string& resource) {
  const auto part = quantity_in(list, resource), whole = quantity_in(node.allocatable, resource);
  if (!part || !whole || whole->milli_value() <= 0) return {"-"};
  const double share =
      static_cast<double>(part->milli_value()) / static_cast<double>(whole->milli_value());
  return {fmt::format("{:.0f}%", 100 * share), share > 1 ? Colour::kYellow : Colour::kNone};
}

}  // namespace

std::string resource_table_text(const NodeResources& node, const Screen& screen) {
  std::vector<Row> rows{{}};
  for (const char* title : {"RESOURCE", "CAPACITY", "RESERVED", "ALLOCATABLE", "REQUESTED", "SHARE",
                            "LIMITS", "COMMITTED"})
    rows.front().push_back({title, Colour::kBold});
  for (const auto& [resource, capacity] : node.capacity)
    rows.push_back({{printable(resource)},
                    {amount_of(node.capacity, resource)},
                    {amount_of(node.reserved, resource)},
                    {amount_of(node.allocatable, resource)},
                    {amount_of(node.requested, resource)},
                    share_of(node, node.requested, resource),
                    {amount_of(node.limits, resource)},
                    share_of(node, node.limits, resource)});
  return rows.size() == 1 ? "" : table(rows, 1, screen);
}

}  // namespace headroom::ctl
