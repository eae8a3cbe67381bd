// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/cpu_conversion.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace headroom {
namespace {

constexpr std::int64_t kMilliPerCpu = 1000;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::uint32_t kMinWeight = 1;
constexpr std::uint32_t kMaxWeight = 10'000;
constexpr Microseconds kMinQuota(1000);  // the kernel refuses less

std::uint32_t linear(std::uint64_t shares) {
  return static_cast<std::uint32_t>(1 + (shares - 2) * 9999 / 262'142);
}

// Through three points, with L = log2(shares): 2 → 1, 1024 → 100, 262144 → 10000 (runc 4772,
// opencontainers/cgroups 20).
std::uint32_t quadratic(std::uint64_t shares) {
  const double l = std::log2(static_cast<double>(shares));
  const double exponent = (l * l + 125 * l) / 612.0 - 7.0 / 34.0;
  return static_cast<std::uint32_t>(std::ceil(std::pow(10, exponent)));
}

}  // namespace

CpuShares shares_of(MilliCpu cpu) {
  constexpr std::int64_t kMax = 256 * kMilliPerCpu;  // so many give kMaxShares
  const std::int64_t milli = std::clamp<std::int64_t>(cpu.count, 0, kMax);
  const auto shares = static_cast<std::uint64_t>(milli * kSharesPerCpu / kMilliPerCpu);
  return {std::clamp(shares, kMinShares.count, kMaxShares.count)};
}

std::optional<Microseconds> directory_quota(MilliCpu cpu, Microseconds period) {
  assert(period.count() > 0);
  if (cpu.count <= 0) return std::nullopt;
  std::int64_t product = 0;
  if (__builtin_mul_overflow(cpu.count, std::int64_t{period.count()}, &product))
    product = std::numeric_limits<std::int64_t>::max();
  return std::max(Microseconds(product / kMilliPerCpu), kMinQuota);
}

CpuWeight weight_of(CpuShares shares, WeightFormula formula) {
  if (shares <= kMinShares) return {kMinWeight};
  if (shares >= kMaxShares) return {kMaxWeight};
  switch (formula) {
    case WeightFormula::kLinear:
      return {linear(shares.count)};
    case WeightFormula::kQuadratic:
      return {quadratic(shares.count)};
  }
  return {kMinWeight};
}

}  // namespace headroom
