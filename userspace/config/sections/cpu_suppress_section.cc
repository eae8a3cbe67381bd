// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"

#include <headroom/pod.h>

#include <array>
#include <limits>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 3> kCpuSuppressKeys{"threshold", "always", "batchPriority"};

}  // namespace

std::span<const std::string_view> cpu_suppress_keys() {
  return kCpuSuppressKeys;
}

void read_cpu_suppress(const Section& headroom, Config& config) {
  const auto section = headroom.map("cpuSuppress");
  if (!section) return;
  section->reject_unknown_keys(kCpuSuppressKeys);
  config.cpu_suppress.threshold = read_percentage(*section, "threshold", "20%");
  if (const auto always = section->boolean("always")) config.cpu_suppress.always = *always;
  if (config.cpu_suppress.always && config.cpu_suppress.threshold)
    section->add_error("threshold", "has no effect beside always: true");
  if (const auto priority = section->integer(
          "batchPriority", std::numeric_limits<std::int32_t>::min(), kSystemCriticalPriority - 1))
    config.cpu_suppress.batch_priority = static_cast<std::int32_t>(*priority);
}

}  // namespace headroom::config
