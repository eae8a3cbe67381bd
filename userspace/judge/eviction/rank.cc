// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/rank.h"

#include "judge/resources.h"

#include <algorithm>
#include <compare>
#include <limits>

namespace headroom {
namespace {

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

// Saturated, so that a manifest that asks for -8Ei cannot wrap the order.
std::int64_t excess(std::int64_t usage, std::int64_t request) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(usage, request, &difference)) return difference;
  return request > 0 ? std::numeric_limits<std::int64_t>::min()
                     : std::numeric_limits<std::int64_t>::max();
}

// --- a ranking is a list of comparators ------------------------------------------------------

// A contender in the numbers of one signal. Without stats, usage and excess mean nothing.
struct Measure {
  std::uint32_t index = 0;
  bool known = false;
  bool over_request = false;
  std::int32_t priority = 0;
  std::int64_t excess = 0;
};

// Less: `a` is evicted before `b`.
using Compare = std::strong_ordering (*)(const Measure& a, const Measure& b);

std::strong_ordering unknown_first(const Measure& a, const Measure& b) {
  return a.known <=> b.known;
}
std::strong_ordering over_request_first(const Measure& a, const Measure& b) {
  return b.over_request <=> a.over_request;
}
std::strong_ordering lower_priority_first(const Measure& a, const Measure& b) {
  return a.priority <=> b.priority;
}
std::strong_ordering larger_excess_first(const Measure& a, const Measure& b) {
  return b.excess <=> a.excess;
}
std::strong_ordering by_index(const Measure& a, const Measure& b) {
  return a.index <=> b.index;
}

constexpr Compare kByRequest[] = {unknown_first, over_request_first, lower_priority_first,
                                  larger_excess_first, by_index};
// Processes are not requested: the count alone is the excess.
constexpr Compare kByPriority[] = {lower_priority_first, unknown_first, larger_excess_first,
                                   by_index};

std::span<const Compare> comparators(Signal signal) {
  if (signal == Signal::kPidAvailable) return kByPriority;
  return kByRequest;
}

// --- what of a pod a signal counts -----------------------------------------------------------

struct DiskParts {
  bool rootfs = false;
  bool logs = false;
  bool local_volumes = false;
};

DiskParts parts_on(Signal signal, ImageStorage images) {
  const bool images_alone =
      signal == Signal::kImageFsAvailable || signal == Signal::kImageFsInodesFree;
  const bool nodefs = signal == Signal::kNodeFsAvailable || signal == Signal::kNodeFsInodesFree;
  if (!images.dedicated) return {.rootfs = true, .logs = true, .local_volumes = true};
  if (images.split) return {!images_alone, !images_alone, !images_alone};
  return {.rootfs = !nodefs, .logs = nodefs, .local_volumes = nodefs};
}

bool counts_inodes(Signal signal) {
  return resource_of(signal) == "inodes";
}

void add_known(std::int64_t& sum, const FsUsage& part, bool inodes) {
  if (inodes && part.inodes) sum = add(sum, *part.inodes);
  if (!inodes && part.used) sum = add(sum, part.used->count);
}

std::int64_t disk_usage(Signal signal, ImageStorage images, const PodUsage& usage) {
  const DiskParts parts = parts_on(signal, images);
  const bool inodes = counts_inodes(signal);
  std::int64_t sum = 0;
  for (const ContainerUsage& container : usage.containers) {
    if (parts.rootfs) add_known(sum, container.rootfs, inodes);
    if (parts.logs) add_known(sum, container.logs, inodes);
  }
  if (!parts.local_volumes) return sum;
  for (const FsUsage& volume : usage.local_volumes)
    add_known(sum, volume, inodes);
  return sum;
}

// A pod that has stats, but not this one, ranks as using none of it: the kubelet's rule.
std::int64_t usage_of(Signal signal, ImageStorage images, const PodUsage& usage) {
  if (is_memory(signal)) return usage.working_set ? usage.working_set->count : 0;
  if (signal == Signal::kPidAvailable) return usage.processes ? *usage.processes : 0;
  return disk_usage(signal, images, usage);
}

// The request that is subtracted. For inodes the kubelet subtracts the bytes of ephemeral-storage,
// which makes no sense and is kept so that both choose the same victim (KUBELET.md 1.6).
std::int64_t credit_of(Signal signal, const Pod& pod) {
  if (signal == Signal::kPidAvailable) return 0;
  return eviction_request(pod, is_memory(signal) ? "memory" : "ephemeral-storage").value();
}

Measure measure(Signal signal, ImageStorage images, const Contender& contender) {
  Measure result{.priority = contender.pod->priority};
  if (!contender.usage) return result;
  const std::int64_t usage = usage_of(signal, images, *contender.usage);
  const std::int64_t credit = credit_of(signal, *contender.pod);
  result.known = true;
  result.over_request = usage > (counts_inodes(signal) ? 0 : credit);
  result.excess = excess(usage, credit);
  return result;
}

}  // namespace

bool evicts_before(const Candidate& a, const Candidate& b) {
  if (a.working_set.has_value() != b.working_set.has_value()) return !a.working_set.has_value();
  if (a.working_set) {
    const bool a_over = *a.working_set > a.memory_request;
    const bool b_over = *b.working_set > b.memory_request;
    if (a_over != b_over) return a_over;
  }
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.working_set) {
    const auto a_excess = excess(a.working_set->count, a.memory_request.count);
    const auto b_excess = excess(b.working_set->count, b.memory_request.count);
    if (a_excess != b_excess) return a_excess > b_excess;
  }
  return a.pod < b.pod;
}

void rank_by_memory(std::span<Candidate> candidates) {
  std::sort(candidates.begin(), candidates.end(), evicts_before);
}

std::vector<std::uint32_t> rank(Signal signal, ImageStorage images,
                                std::span<const Contender> contenders) {
  std::vector<Measure> measures;
  measures.reserve(contenders.size());
  for (const Contender& contender : contenders) {
    measures.push_back(measure(signal, images, contender));
    measures.back().index = static_cast<std::uint32_t>(measures.size() - 1);
  }
  const auto keys = comparators(signal);
  std::sort(measures.begin(), measures.end(), [&](const Measure& a, const Measure& b) {
    for (const Compare compare : keys)
      if (const auto order = compare(a, b); order != 0) return order < 0;
    return false;
  });
  std::vector<std::uint32_t> order;
  order.reserve(measures.size());
  for (const Measure& each : measures)
    order.push_back(each.index);
  return order;
}

}  // namespace headroom
