// SPDX-License-Identifier: Apache-2.0
#include "act/units/unit_properties.h"

#include <cstdint>
#include <limits>

#include <spdlog/fmt/fmt.h>

namespace headroom::act {
namespace {

// systemd takes a share of time in hundredths of a percent; rounded up, so that dividing gives the
// quota again.
std::string quota(const CpuMax& cpu) {
  if (cpu.quota.is_max()) return "CPUQuota=";
  constexpr std::int64_t kWhole = 10'000;
  const std::int64_t period = cpu.period.count();
  const std::int64_t share = (cpu.quota.most()->count() * kWhole + period - 1) / period;
  return fmt::format("CPUQuota={}.{:02}%", share / 100, share % 100);
}

template <class T>
std::string amount_text(const Limit<T>& limit) {
  return limit.is_max() ? "infinity" : std::to_string(limit.most()->count);
}

}  // namespace

std::vector<std::string> unit_assignments(const CgroupValues& values) {
  std::vector<std::string> assignments;
  if (values.cpu_weight)
    assignments.push_back(fmt::format("CPUWeight={}", values.cpu_weight->value));
  if (values.cpu_max) {
    assignments.push_back(quota(*values.cpu_max));
    assignments.push_back(fmt::format("CPUQuotaPeriodSec={}us", values.cpu_max->period.count()));
  }
  for_each_limit(values, [&](const char* name, const auto& limit) {
    assignments.push_back(fmt::format("{}={}", name, amount_text(limit)));
  });
  if (values.memory_oom_group)
    assignments.emplace_back(*values.memory_oom_group ? "OOMPolicy=kill" : "OOMPolicy=continue");
  return assignments;
}

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
    // Accounting alone does not enable the cpu controller: the kernel counts CPU time without it.
    if (controller == "cpu") all.push_back({"CPUWeight", std::uint64_t{100}});
    if (controller == "memory") all.push_back({"MemoryAccounting", true});
    if (controller == "pids") all.push_back({"TasksAccounting", true});
    if (controller == "io") all.push_back({"IOAccounting", true});
    if (controller == "cpuset") all.push_back({"AllowedCPUs", mask_of(possible)});
  }
  return all;
}

}  // namespace headroom::act
