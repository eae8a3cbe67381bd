// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/cpuset_write_order.h"

#include <algorithm>

namespace headroom {
namespace {

using Writes = std::vector<CpuWrite>;

bool is_within(const std::string& path, const std::string& above) {
  return path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/';
}

Writes shrinking_writes(std::span<const CpuTarget> targets) {
  Writes writes;
  for (const CpuTarget& target : targets) {
    if (target.stuck || target.has.subset_of(target.wanted)) continue;
    const CpuSet retained = target.has & target.wanted;
    if (!retained.empty()) writes.push_back({target.path, retained});
  }
  return writes;
}

bool moves_completely(const CpuTarget& target, const CpuSet& shared) {
  return !target.stuck && !target.has.intersects(target.wanted) && !target.has.subset_of(shared);
}

// In a cgroup that stays where it is and does not have the whole pool, no child can move to the
// pool: the kernel would leave it where it is. It is in no other container's way there, and follows
// when its parent gets more.
bool is_blocked_by_ancestor(const CpuTarget& target, std::span<const CpuTarget> targets,
                            const CpuSet& shared) {
  return std::ranges::any_of(targets, [&](const CpuTarget& above) {
    return is_within(target.path, above.path) && !shared.subset_of(above.has) &&
           !moves_completely(above, shared);
  });
}

Writes intermediate_writes(std::span<const CpuTarget> targets, const CpuSet& shared) {
  Writes writes;
  for (const CpuTarget& target : targets)
    if (moves_completely(target, shared) && !is_blocked_by_ancestor(target, targets, shared))
      writes.push_back({target.path, shared});
  return writes;
}

// CPUs that another cgroup still uses and must release; in one line of the tree both have the same
// CPUs.
CpuSet withheld_cpus(const CpuTarget& target, std::span<const CpuTarget> targets) {
  CpuSet withheld;
  for (const CpuTarget& other : targets)
    if (other.stuck && !is_within(other.path, target.path) && !is_within(target.path, other.path) &&
        other.path != target.path)
      withheld |= other.has - other.wanted;
  return withheld;
}

Writes final_writes(std::span<const CpuTarget> targets) {
  Writes writes;
  for (const CpuTarget& target : targets) {
    if (target.stuck || target.has == target.wanted) continue;
    const CpuSet cpus = target.wanted - withheld_cpus(target, targets);
    if (!cpus.empty() && cpus != target.has) writes.push_back({target.path, cpus});
  }
  return writes;
}

// A cgroup that gets the same CPUs as an ancestor in this stage follows by itself, unless it has a
// set of its own: the next stage corrects that.
void drop_redundant_children(Writes& writes) {
  const Writes all = writes;
  std::erase_if(writes, [&](const CpuWrite& write) {
    return std::ranges::any_of(all, [&](const CpuWrite& above) {
      return is_within(write.path, above.path) && above.cpus == write.cpus;
    });
  });
}

}  // namespace

std::vector<CpuWrite> next_writes(std::span<const CpuTarget> targets, const CpuSet& shared) {
  Writes writes = shrinking_writes(targets);
  if (writes.empty()) writes = intermediate_writes(targets, shared);
  if (writes.empty()) writes = final_writes(targets);
  drop_redundant_children(writes);
  std::ranges::stable_sort(writes, {}, [](const CpuWrite& write) { return write.path.size(); });
  return writes;
}

}  // namespace headroom
