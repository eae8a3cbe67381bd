// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/node_allocatable.h"

#include "judge/eviction/threshold/threshold.h"

#include <headroom/quantity.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace headroom {
namespace {

// A percentage of an unknown capacity is unknown; nothing is reserved then.
void reserve(std::optional<Bytes>& reserved, const Threshold& threshold,
             const std::optional<Bytes>& capacity) {
  if (capacity) reserved = Bytes{resolve(threshold.value, capacity->count)};
}

// Soft thresholds and those of other filesystems do not count.
Amounts eviction_reservation(std::span<const Threshold> thresholds, const Amounts& capacity) {
  Amounts reserved;
  for (const Threshold& threshold : thresholds) {
    if (!threshold.hard()) continue;
    if (threshold.signal == Signal::kMemoryAvailable)
      reserve(reserved.memory, threshold, capacity.memory);
    if (threshold.signal == Signal::kNodeFsAvailable)
      reserve(reserved.ephemeral_storage, threshold, capacity.ephemeral_storage);
  }
  return reserved;
}

Quantity quantity(MilliCpu cpu) {
  return Quantity::of_milli(cpu.count);
}
Quantity quantity(Bytes bytes) {
  return Quantity::of(bytes.count, Quantity::Format::kBinarySI);
}
Quantity quantity(Tasks tasks) {
  return Quantity::of(tasks.count);
}

class Check {
 public:
  template <class T>
  void resource(std::string_view name, const std::optional<T>& capacity,
                const std::optional<T>& reserved) {
    if (!reserved || reserved->count == 0 || (capacity && *capacity >= *reserved)) return;
    const std::string found = capacity ? "capacity of " + quantity(*capacity).canonical()
                                       : "a capacity that is not known";
    errors_.push_back({std::string(name), "Resource \"" + std::string(name) +
                                              "\" has a reservation of " +
                                              quantity(*reserved).canonical() + " but " + found +
                                              ". Expected capacity >= reservation."});
  }
  std::vector<ReservationError> take() { return std::move(errors_); }

 private:
  std::vector<ReservationError> errors_;
};

std::vector<ReservationError> check(const Amounts& capacity, const Amounts& reservation) {
  Check check;
  check.resource("cpu", capacity.cpu, reservation.cpu);
  check.resource("ephemeral-storage", capacity.ephemeral_storage, reservation.ephemeral_storage);
  check.resource("memory", capacity.memory, reservation.memory);
  check.resource("pid", capacity.pids, reservation.pids);
  return check.take();
}

// Huge pages are not part of the memory and are allocated under their own names. This does not
// apply to the pods' cgroup (kubernetes/kubernetes 119171).
Amounts without_huge_pages(Amounts amounts) {
  if (!amounts.memory) return amounts;
  for (const auto& [size, bytes] : amounts.huge_pages)
    amounts.memory = std::max(*amounts.memory - bytes, Bytes{0});
  return amounts;
}

}  // namespace

tl::expected<NodeAllocatable, std::vector<ReservationError>> node_allocatable(
    const Amounts& capacity, const AllocatablePolicy& policy,
    std::span<const Threshold> thresholds) {
  const Amounts reserved = sum(policy.kube.amounts, policy.system.amounts);
  NodeAllocatable node;
  node.reservation = policy.ignore_eviction_threshold
                         ? reserved
                         : sum(reserved, eviction_reservation(thresholds, capacity));
  if (auto errors = check(capacity, node.reservation); !errors.empty())
    return tl::make_unexpected(std::move(errors));
  node.allocatable = without_huge_pages(remainder(capacity, node.reservation));
  node.pods_limit = remainder(capacity, reserved);
  return node;
}

std::string invalid_node_allocatable(const std::vector<ReservationError>& errors) {
  std::string text = "invalid Node Allocatable configuration.";
  for (const ReservationError& error : errors)
    text.append(" ").append(error.what);
  return text;
}

}  // namespace headroom
