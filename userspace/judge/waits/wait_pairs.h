// SPDX-License-Identifier: Apache-2.0
// WaitPairs: which pod waited while which other one had what it waited for: a limited number of
// pairs, the longest waits. Older waits count less: half after kHalfLife.
#pragma once

#include <headroom/units.h>
#include <headroom/waits.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace headroom {

class WaitPairs {
 public:
  static constexpr std::size_t kPairs = 64;
  static constexpr Duration kHalfLife = std::chrono::minutes(5);
  // Of one window: the pods that waited longest, and the pods that had most.
  static constexpr std::size_t kWaiters = 8;
  static constexpr std::size_t kHolders = 8;

  struct Waiter {
    CgroupId pod;
    double waited = 0;  // nanoseconds
  };
  struct Holder {
    CgroupId pod;     // 0: the kernel, and processes outside pods
    double held = 0;  // in any unit; a wait is divided among the holders in proportion
  };
  // Adds the waits of a window of this length. `may_hold(holder, waiter)` is false for a pair that
  // does not compete. Both lists may be longer than is used; their order is changed.
  template <class MayHold>
  void add(Duration window, std::vector<Waiter>& waiters, std::vector<Holder>& holders,
           MayHold&& may_hold) {
    age(window);
    keep_longest(waiters, holders);
    for (const Waiter& waiter : waiters) {
      double held = 0;
      for (const Holder& holder : holders)
        if (may_hold(holder.pod, waiter.pod)) held += holder.held;
      for (const Holder& holder : holders)
        if (held > 0 && may_hold(holder.pod, waiter.pod))
          add({holder.pod, waiter.pod,
               static_cast<std::uint64_t>(waiter.waited * holder.held / held)});
    }
    order();
  }
  // Drops the pairs of pods for which `exists` is false.
  template <class Exists>
  void drop_gone(Exists&& exists) {
    std::erase_if(pairs_, [&](const WaitPair& pair) {
      return !exists(pair.waiter) || (pair.holder.value != 0 && !exists(pair.holder));
    });
  }
  std::span<const WaitPair> longest() const { return pairs_; }

 private:
  static void keep_longest(std::vector<Waiter>& waiters, std::vector<Holder>& holders);
  void age(Duration window);
  void add(const WaitPair& pair);
  void order();

  std::vector<WaitPair> pairs_;  // longest first
};

}  // namespace headroom
