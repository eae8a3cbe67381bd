// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"

#include <array>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 2> kCpuBurstKeys{"budget", "contended"};

}  // namespace

std::span<const std::string_view> cpu_burst_keys() {
  return kCpuBurstKeys;
}

void read_cpu_burst(const Section& headroom, Config& config) {
  const auto section = headroom.map("cpuBurst");
  if (!section) return;
  section->reject_unknown_keys(kCpuBurstKeys);
  config.cpu_burst.budget = read_percentage(*section, "budget", "20%");
  if (const auto share = read_percentage(*section, "contended", "90%"))
    config.cpu_burst.contended = *share;
}

}  // namespace headroom::config
