// SPDX-License-Identifier: Apache-2.0
// Reservations of the memory manager, held against what node allocatable reserves (kubelet:
// cm/memorymanager/memory_manager.go).
#include "judge/allocatable/setting_error.h"
#include "judge/memory/memory_policy.h"

#include <set>

namespace headroom {

bool is_memory_resource(std::string_view resource) {
  return resource == "memory" || resource.starts_with("hugepages-");
}

std::vector<std::string> find_reservation_faults(const MemorySizes& sizes,
                                                 const ReservedMemory& reserved,
                                                 const ResourceList& reservation) {
  std::vector<std::string> faults;
  std::set<std::string, std::less<>> resources;
  ResourceList totals;
  for (const auto& [resource, amount] : reservation)
    if (is_memory_resource(resource)) resources.insert(resource);
  for (const auto& [node, limits] : reserved) {
    if (!sizes.contains(node))
      faults.push_back("the reserved memory configuration references a NUMA node " +
                       std::to_string(node) + " that does not exist on this machine");
    for (const auto& [resource, amount] : limits) {
      if (!is_memory_resource(resource)) continue;
      resources.insert(resource);
      Quantity total = amount;  // the last node's format is that of the message
      total += totals[resource];
      totals[resource] = total;
    }
  }
  for (const std::string& resource : resources) {
    const Quantity total = totals.contains(resource) ? totals.at(resource) : Quantity{};
    const auto entry = reservation.find(resource);
    const Quantity expected = entry == reservation.end() ? Quantity{} : entry->second;
    if (total != expected)
      faults.push_back("the total amount " + double_quoted(total.canonical()) + " of type " +
                       double_quoted(resource) + " is not equal to the value " +
                       double_quoted(expected.canonical()) +
                       " determined by Node Allocatable feature");
  }
  if (!totals.contains("memory") || totals.at("memory").sign() <= 0)
    faults.emplace_back("[memorymanager] you should specify the system reserved memory");
  return faults;
}

}  // namespace headroom
