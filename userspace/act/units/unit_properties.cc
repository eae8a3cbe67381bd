// SPDX-License-Identifier: Apache-2.0
#include "act/units/unit_properties.h"

#include <limits>

namespace headroom::act {
namespace {

constexpr std::uint64_t kInfinity = std::numeric_limits<std::uint64_t>::max();

template <class T>
std::uint64_t amount(const Limit<T>& limit) {
  return limit.is_max() ? kInfinity : static_cast<std::uint64_t>(limit.most()->count);
}

// systemd keeps CPU time per second, rounded up here so that dividing gives the quota again.
void add_quota(UnitProperties& all, const CpuMax& cpu) {
  constexpr std::uint64_t kSecond = 1'000'000;
  const auto period = static_cast<std::uint64_t>(cpu.period.count());
  std::uint64_t per_second = kInfinity;
  if (!cpu.quota.is_max()) {
    const auto quota = static_cast<std::uint64_t>(cpu.quota.most()->count());
    per_second = (quota * kSecond + period - 1) / period;
  }
  all.push_back({"CPUQuotaPeriodUSec", period});
  all.push_back({"CPUQuotaPerSecUSec", per_second});
}

std::vector<std::uint8_t> mask_of(const CpuSet& cpus) {
  std::vector<std::uint8_t> mask;
  for (const Cpu cpu : cpus) {
    const auto byte = static_cast<std::size_t>(cpu / 8);
    if (mask.size() <= byte) mask.resize(byte + 1);
    mask[byte] = static_cast<std::uint8_t>(mask[byte] | (1U << (cpu % 8)));
  }
  return mask;
}

}  // namespace

UnitProperties unit_properties(const CgroupValues& values) {
  UnitProperties all;
  if (values.cpu_weight) all.push_back({"CPUWeight", std::uint64_t{values.cpu_weight->value}});
  if (values.cpu_max) add_quota(all, *values.cpu_max);
  for_each_limit(values, [&](const char* name, const auto& limit) {
    all.push_back({name, amount(limit)});
  });
  return all;
}

UnitProperties controller_properties(std::span<const std::string> controllers,
                                     const CpuSet& possible) {
  UnitProperties all;
  for (const std::string& controller : controllers) {
    // Accounting alone does not bring the cpu controller: the kernel counts CPU time without it.
    if (controller == "cpu") all.push_back({"CPUWeight", std::uint64_t{100}});
    if (controller == "memory") all.push_back({"MemoryAccounting", true});
    if (controller == "pids") all.push_back({"TasksAccounting", true});
    if (controller == "io") all.push_back({"IOAccounting", true});
    if (controller == "cpuset") all.push_back({"AllowedCPUs", mask_of(possible)});
  }
  return all;
}

}  // namespace headroom::act
