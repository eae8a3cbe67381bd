// SPDX-License-Identifier: Apache-2.0
#include "judge/admission/resource_counts.h"

#include <limits>

namespace headroom {

ResourceCounts counts_of(const ResourceList& list) {
  ResourceCounts counts;
  for (const auto& [resource, quantity] : list)
    counts[resource] = resource == "cpu" ? quantity.milli_value() : quantity.value();
  return counts;
}

Quantity quantity_of(std::string_view resource, std::int64_t count) {
  if (resource == "cpu") return Quantity::of_milli(count);
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return Quantity::of(count, bytes ? Quantity::Format::kBinarySI : Quantity::Format::kDecimalSI);
}

std::int64_t of(const ResourceCounts& counts, std::string_view resource) {
  const auto entry = counts.find(resource);
  return entry == counts.end() ? 0 : entry->second;
}

void add(ResourceCounts& sum, const ResourceCounts& more) {
  for (const auto& [resource, count] : more) {
    std::int64_t& all = sum[resource];
    if (__builtin_add_overflow(all, count, &all)) all = std::numeric_limits<std::int64_t>::max();
  }
}

bool is_extended(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = resource.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
}

}  // namespace headroom
