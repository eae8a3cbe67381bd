// SPDX-License-Identifier: Apache-2.0
#include "judge/waits/wait_pairs.h"

#include <algorithm>
#include <cmath>

namespace headroom {
namespace {

template <class Each, class Before>
void keep_first(std::size_t count, std::vector<Each>& list, Before before) {
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, list.size()));
  std::partial_sort(list.begin(), list.begin() + kept, list.end(), before);
  list.resize(static_cast<std::size_t>(kept));
}

}  // namespace

void WaitPairs::keep_longest(std::vector<Waiter>& waiters, std::vector<Holder>& holders) {
  std::erase_if(waiters, [](const Waiter& each) { return each.waited < 1; });
  std::erase_if(holders, [](const Holder& each) { return each.held <= 0; });
  keep_first(kWaiters, waiters,
             [](const Waiter& a, const Waiter& b) { return a.waited > b.waited; });
  keep_first(kHolders, holders, [](const Holder& a, const Holder& b) { return a.held > b.held; });
}

void WaitPairs::age(Duration window) {
  const double kept = std::exp2(-std::chrono::duration<double>(window) / kHalfLife);
  for (WaitPair& pair : pairs_)
    pair.ns = static_cast<std::uint64_t>(static_cast<double>(pair.ns) * kept);
  std::erase_if(pairs_, [](const WaitPair& pair) { return pair.ns < 1'000'000; });
}

// If there is no room, the pair replaces the shortest one, unless it is shorter itself.
void WaitPairs::add(const WaitPair& pair) {
  if (pair.ns == 0) return;
  const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&](const WaitPair& each) {
    return each.holder == pair.holder && each.waiter == pair.waiter;
  });
  if (known != pairs_.end()) {
    known->ns += pair.ns;
  } else if (pairs_.size() < kPairs) {
    pairs_.push_back(pair);
  } else {
    auto shortest =
        std::min_element(pairs_.begin(), pairs_.end(),
                         [](const WaitPair& a, const WaitPair& b) { return a.ns < b.ns; });
    if (shortest->ns < pair.ns) *shortest = pair;
  }
}

void WaitPairs::order() {
  std::stable_sort(pairs_.begin(), pairs_.end(),
                   [](const WaitPair& a, const WaitPair& b) { return a.ns > b.ns; });
}

}  // namespace headroom
