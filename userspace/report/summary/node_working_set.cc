// SPDX-License-Identifier: Apache-2.0
#include "report/summary/node_working_set.h"

#include <algorithm>

namespace headroom::report {
namespace {

std::int64_t huge_page_bytes(const NodeView& view) {
  std::int64_t bytes = 0;
  if (!view.status) return bytes;
  for (const auto& [resource, quantity] : view.status->capacity)
    if (resource.starts_with("hugepages-")) bytes += quantity.value();
  return bytes;
}

}  // namespace

std::optional<std::int64_t> node_working_set(const NodeView& view) {
  const auto& signal = of(view.observations, Signal::kMemoryAvailable);
  if (!signal) return std::nullopt;
  const std::int64_t unavailable = signal->capacity - signal->available;
  return std::max<std::int64_t>(0, unavailable - huge_page_bytes(view));
}

}  // namespace headroom::report
