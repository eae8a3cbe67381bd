// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/rank/rank.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <compare>
#include <limits>

namespace headroom {
namespace {

struct DiskParts {
  bool rootfs = false;
  bool logs = false;
  bool local_volumes = false;
};

bool of_images(Signal signal) {
  return signal == Signal::kImageFsAvailable || signal == Signal::kImageFsInodesFree;
}
bool of_nodefs(Signal signal) {
  return signal == Signal::kNodeFsAvailable || signal == Signal::kNodeFsInodesFree;
}

// The kubelet knows no three filesystems: with writable layers apart from the images it takes them
// to be on nodefs.
DiskParts parts_on(Signal signal, ImageStorage images) {
  constexpr DiskParts kAll{.rootfs = true, .logs = true, .local_volumes = true};
  if (!images.dedicated) return kAll;
  if (images.split && of_images(signal)) return {};
  if (images.split && !images.apart) return kAll;
  const bool nodefs = of_nodefs(signal);
  return {.rootfs = !nodefs, .logs = nodefs, .local_volumes = nodefs};
}

// Saturated.
std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

void add_known(std::int64_t& sum, const FsUsage& part, bool inodes) {
  if (inodes && part.inodes) sum = add(sum, *part.inodes);
  if (!inodes && part.used) sum = add(sum, part.used->count);
}

std::int64_t of_containers(DiskParts parts, bool inodes,
                           std::span<const ContainerUsage> containers) {
  std::int64_t sum = 0;
  for (const ContainerUsage& container : containers) {
    if (parts.rootfs) add_known(sum, container.rootfs, inodes);
    if (parts.logs) add_known(sum, container.logs, inodes);
  }
  return sum;
}

}  // namespace

bool holds_pods(Signal signal, ImageStorage images) {
  return !(images.split && of_images(signal));
}

std::int64_t disk_usage(Signal signal, ImageStorage images,
                        std::span<const ContainerUsage> containers,
                        std::span<const FsUsage> local_volumes) {
  const DiskParts parts = parts_on(signal, images);
  const bool inodes = counts_inodes(signal);
  std::int64_t sum = of_containers(parts, inodes, containers);
  if (!parts.local_volumes) return sum;
  for (const FsUsage& volume : local_volumes)
    add_known(sum, volume, inodes);
  return sum;
}

std::int64_t disk_usage(Signal signal, ImageStorage images, const DiskUsage& usage) {
  const DiskParts parts = parts_on(signal, images);
  const bool inodes = counts_inodes(signal);
  std::int64_t sum = of_containers(parts, inodes, usage.containers);
  if (!parts.local_volumes) return sum;
  for (const VolumeUsage& volume : usage.volumes)
    if (volume.ranked) add_known(sum, volume.usage, inodes);
  return sum;
}

ReclaimSteps reclaim_steps(Signal signal, ImageStorage images) {
  if (!is_disk(signal)) return {};
  if (!images.dedicated) return {.containers = true, .images = true};
  if (images.split) return {.containers = !of_images(signal), .images = of_images(signal)};
  return {.containers = !of_nodefs(signal), .images = !of_nodefs(signal)};
}

namespace {

// Saturated, so that a manifest that asks for -8Ei cannot wrap the order.
std::int64_t difference(std::int64_t usage, std::int64_t credit) {
  std::int64_t left = 0;
  if (!__builtin_sub_overflow(usage, credit, &left)) return left;
  return credit > 0 ? std::numeric_limits<std::int64_t>::min()
                    : std::numeric_limits<std::int64_t>::max();
}

std::optional<std::int64_t> excess(const Candidate& candidate) {
  if (!candidate.usage) return std::nullopt;
  return difference(*candidate.usage, candidate.credit);
}

// --- a ranking is a list of comparators ------------------------------------------------------

// Less: `a` is evicted before `b`.
using Compare = std::strong_ordering (*)(const Candidate& a, const Candidate& b);

// Not the kubelet's: it ranks no pod that it cannot describe.
std::strong_ordering complete_description_first(const Candidate& a, const Candidate& b) {
  return a.description <=> b.description;
}
std::strong_ordering unknown_first(const Candidate& a, const Candidate& b) {
  return a.usage.has_value() <=> b.usage.has_value();
}
std::strong_ordering over_request_first(const Candidate& a, const Candidate& b) {
  if (!a.usage || !b.usage) return std::strong_ordering::equal;
  return (*b.usage > b.request) <=> (*a.usage > a.request);
}
std::strong_ordering lower_priority_first(const Candidate& a, const Candidate& b) {
  return a.priority <=> b.priority;
}
std::strong_ordering larger_excess_first(const Candidate& a, const Candidate& b) {
  return excess(b) <=> excess(a);
}
std::strong_ordering by_index(const Candidate& a, const Candidate& b) {
  return a.pod <=> b.pod;
}

constexpr Compare kByRequest[] = {complete_description_first, unknown_first,
                                  over_request_first,         lower_priority_first,
                                  larger_excess_first,        by_index};
constexpr Compare kByPriority[] = {complete_description_first, lower_priority_first, unknown_first,
                                   larger_excess_first, by_index};

std::span<const Compare> comparators(Signal signal) {
  if (signal == Signal::kPidAvailable || signal == Signal::kCpuPressure) return kByPriority;
  return kByRequest;
}

// --- what of a pod a signal counts -----------------------------------------------------------

// For inodes the kubelet holds usage against none requested, but then subtracts the bytes of
// ephemeral-storage, which makes no sense and is kept so that both choose the same victim.
void set_request_and_credit(Signal signal, Bytes memory_request, Bytes storage_request,
                            Candidate& candidate) {
  // Of cpu.pressure: judge/eviction/cpu_eviction.h.
  if (signal == Signal::kPidAvailable || signal == Signal::kCpuPressure) return;
  candidate.credit = (is_disk(signal) ? storage_request : memory_request).count;
  candidate.request = counts_inodes(signal) ? 0 : candidate.credit;
}

// A pod that has stats, but not this one, ranks as using none of it: the kubelet's rule.
std::int64_t usage_of(Signal signal, ImageStorage images, const PodUsage& usage) {
  const std::int64_t held = usage.working_set ? usage.working_set->count : 0;
  if (wants_memory(signal)) return held;
  if (signal == Signal::kSwapAvailable) return held + (usage.swap ? usage.swap->count : 0);
  if (signal == Signal::kPidAvailable) return usage.processes ? *usage.processes : 0;
  return disk_usage(signal, images, usage.containers, usage.local_volumes);
}

// What of a pod's memory the signal counts.
std::optional<Bytes> memory_of(Signal signal, const hr_record& record) {
  return signal == Signal::kKernelMemAvailable ? unreclaimable_charge(record) : working_set(record);
}

// Memory and swap together: what is swapped out would be memory again, and what is in memory is
// what will be swapped out next.
std::optional<std::int64_t> memory_and_swap(Signal signal, const hr_record& record) {
  const auto held = memory_of(signal, record);
  const auto swapped = swapped_out(record);
  if (!held || !swapped) return std::nullopt;
  return held->count + swapped->count;
}

std::optional<std::int64_t> current_usage(Signal signal, ImageStorage images,
                                          const PodReading& reading, SwapUse swap_use) {
  if (is_disk(signal)) {
    if (!reading.disk) return std::nullopt;
    return disk_usage(signal, images, *reading.disk);
  }
  if (!reading.record || signal == Signal::kCpuPressure) return std::nullopt;
  if (signal == Signal::kPidAvailable) {
    if (!(reading.record->valid & HR_PIDS)) return std::nullopt;
    return static_cast<std::int64_t>(reading.record->pids_current);
  }
  const auto both = memory_and_swap(signal, *reading.record);
  if (signal == Signal::kSwapAvailable) return both;
  if (swap_use == SwapUse::kCounted && both) return both;
  const auto held = memory_of(signal, *reading.record);
  return held ? std::optional(held->count) : std::nullopt;
}

}  // namespace

bool evicts_before(Signal signal, const Candidate& a, const Candidate& b) {
  for (const Compare compare : comparators(signal))
    if (const auto order = compare(a, b); order != 0) return order < 0;
  return false;
}

void rank(Signal signal, std::span<Candidate> candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return evicts_before(signal, a, b); });
}

void rank_top(Signal signal, std::size_t most, std::span<Candidate> candidates) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, candidates.size()));
  std::partial_sort(
      candidates.begin(), candidates.begin() + count, candidates.end(),
      [&](const Candidate& a, const Candidate& b) { return evicts_before(signal, a, b); });
}

Candidate candidate_for(Signal signal, ImageStorage images, const PodReading& reading,
                        SwapUse swap_use) {
  Candidate candidate;
  candidate.usage = current_usage(signal, images, reading, swap_use);
  candidate.priority = reading.pod->priority;
  candidate.description = reading.description;
  set_request_and_credit(signal, reading.memory_request, reading.storage_request, candidate);
  return candidate;
}

std::vector<std::uint32_t> rank(Signal signal, ImageStorage images,
                                std::span<const RankInput> inputs) {
  std::vector<Candidate> candidates;
  candidates.reserve(inputs.size());
  for (const RankInput& input : inputs) {
    Candidate each{.pod = static_cast<std::uint32_t>(candidates.size()),
                   .usage = {},
                   .priority = input.pod->priority};
    if (input.usage) each.usage = usage_of(signal, images, *input.usage);
    set_request_and_credit(signal, Bytes{eviction_request(*input.pod, "memory").value()},
                           Bytes{eviction_request(*input.pod, "ephemeral-storage").value()}, each);
    candidates.push_back(each);
  }
  rank(signal, candidates);
  std::vector<std::uint32_t> order;
  order.reserve(candidates.size());
  for (const Candidate& each : candidates)
    order.push_back(each.pod);
  return order;
}

}  // namespace headroom
