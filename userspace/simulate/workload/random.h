// SPDX-License-Identifier: Apache-2.0
// Random: random numbers that depend on their key alone, so that they are the same on any thread,
// in any order. The generator is splitmix64; the distributions are written here because those of
// the standard library differ from one library to the next.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>

namespace headroom::simulate {

class Random {
 public:
  explicit Random(std::uint64_t key, std::uint64_t stream = 0)
      : state_(mix(key + 0x9e3779b97f4a7c15) ^ mix(stream * 0xd1342543de82ef95 + 1)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  // From 0 to less than 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  // About normal, with mean 0 and deviation 1, within 3 of the mean; much cheaper than normal().
  double bell() {
    constexpr std::uint64_t kMask = (1 << 21) - 1;
    const std::uint64_t bits = next();
    const std::uint64_t sum = (bits & kMask) + (bits >> 21 & kMask) + (bits >> 42 & kMask);
    return 2 * static_cast<double>(sum) / static_cast<double>(kMask) - 3;
  }
  double log_normal(double median, double sigma) { return median * std::exp(sigma * normal()); }
  double log_uniform(double low, double high) { return low * std::pow(high / low, uniform()); }
  // An index, with a probability in proportion to its weight.
  std::size_t pick(std::span<const double> weights) {
    double sum = 0;
    for (const double weight : weights)
      sum += weight;
    double left = uniform() * sum;
    for (std::size_t i = 0; i + 1 < weights.size(); ++i)
      if ((left -= weights[i]) < 0) return i;
    return weights.size() - 1;
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  std::uint64_t state_;
};

}  // namespace headroom::simulate
