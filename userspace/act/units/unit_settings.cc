// SPDX-License-Identifier: Apache-2.0
#include "act/units/unit_settings.h"

#include "act/units/unit_properties.h"

#include <cstdint>

#include <spdlog/fmt/fmt.h>

namespace headroom::act {
namespace {

// systemd takes a share of time in hundredths of a percent; rounded up, that dividing gives the
// quota again.
std::string quota(const CpuMax& cpu) {
  if (cpu.quota.is_max()) return "CPUQuota=";
  constexpr std::int64_t kWhole = 10'000;
  const std::int64_t period = cpu.period.count();
  const std::int64_t share = (cpu.quota.most()->count() * kWhole + period - 1) / period;
  return fmt::format("CPUQuota={}.{:02}%", share / 100, share % 100);
}

template <class T>
std::string amount(const Limit<T>& limit) {
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
    assignments.push_back(fmt::format("{}={}", name, amount(limit)));
  });
  if (values.memory_oom_group)
    assignments.emplace_back(*values.memory_oom_group ? "OOMPolicy=kill" : "OOMPolicy=continue");
  return assignments;
}

}  // namespace headroom::act
