// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/amounts.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace headroom {
namespace {

// Both must not be negative.
std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t total = 0;
  return __builtin_add_overflow(a, b, &total) ? std::numeric_limits<std::int64_t>::max() : total;
}

template <class T>
std::optional<T> sum(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b) return a ? a : b;
  return T{saturating_sum(a->count, b->count)};
}

template <class T>
std::optional<T> remainder(const std::optional<T>& capacity, const std::optional<T>& reserved) {
  if (!capacity || !reserved) return capacity;
  return T{std::max<std::int64_t>(capacity->count - reserved->count, 0)};
}

}  // namespace

Amounts sum(const Amounts& a, const Amounts& b) {
  Amounts total{.cpu = sum(a.cpu, b.cpu),
                .memory = sum(a.memory, b.memory),
                .ephemeral_storage = sum(a.ephemeral_storage, b.ephemeral_storage),
                .pids = sum(a.pids, b.pids),
                .huge_pages = a.huge_pages};
  for (const auto& [size, more] : b.huge_pages) {
    Bytes& all = total.huge_pages[size];
    all.count = saturating_sum(all.count, more.count);
  }
  return total;
}

Amounts remainder(const Amounts& capacity, const Amounts& reserved) {
  Amounts left{
      .cpu = remainder(capacity.cpu, reserved.cpu),
      .memory = remainder(capacity.memory, reserved.memory),
      .ephemeral_storage = remainder(capacity.ephemeral_storage, reserved.ephemeral_storage),
      .pids = remainder(capacity.pids, reserved.pids),
      .huge_pages = capacity.huge_pages};
  for (auto& [size, amount] : left.huge_pages)
    if (const auto taken = reserved.huge_pages.find(size); taken != reserved.huge_pages.end())
      amount.count = std::max<std::int64_t>(amount.count - taken->second.count, 0);
  return left;
}

}  // namespace headroom
