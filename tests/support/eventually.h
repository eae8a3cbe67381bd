// SPDX-License-Identifier: Apache-2.0
// eventually(): waits until something that another thread does has happened.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace headroom::test {

// False: it did not hold within 5 s.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace headroom::test
