// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/huge_pages.h"

namespace headroom {
namespace {

constexpr std::string_view kPrefix = "hugepages-";

}  // namespace

std::optional<Bytes> huge_page_size(std::string_view resource) {
  if (!resource.starts_with(kPrefix)) return std::nullopt;
  const auto size = Quantity::parse(resource.substr(kPrefix.size()));
  if (!size || size->sign() <= 0) return std::nullopt;
  return Bytes{size->value()};
}

std::string huge_page_resource(Bytes page_size) {
  return std::string(kPrefix) +
         Quantity::of(page_size.count, Quantity::Format::kBinarySI).canonical();
}

std::map<Bytes, Bytes> huge_pages_in(const ResourceList& list) {
  std::map<Bytes, Bytes> pages;
  for (const auto& [resource, amount] : list)
    if (const auto size = huge_page_size(resource)) pages[*size] += Bytes{amount.value()};
  return pages;
}

}  // namespace headroom
