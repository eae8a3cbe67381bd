// SPDX-License-Identifier: Apache-2.0
// growth(): how the CPU time of some work grows with its input.
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <string>

namespace headroom::test {

inline double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The CPU time of `work` with four times the input, over that with `count`: about 4 if the time is
// linear, 16 if it is quadratic. Of each size the fastest of five runs counts: others on the
// machine only make a run slower.
inline double growth(const std::function<std::string(int)>& input, int count,
                     const std::function<void(const std::string&)>& work) {
  const auto fastest = [&](int size) {
    const std::string text = input(size);
    double least = std::numeric_limits<double>::max();
    for (int run = 0; run < 5; ++run) {
      const double before = thread_cpu_seconds();
      work(text);
      least = std::min(least, thread_cpu_seconds() - before);
    }
    return least;
  };
  const double small = fastest(count);
  return fastest(4 * count) / small;
}

}  // namespace headroom::test
