// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"

#include <headroom/pod.h>

#include <array>
#include <limits>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 3> kPodSwapKeys{"high", "zswapWriteback",
                                                       "protectedPriority"};

}  // namespace

std::span<const std::string_view> pod_swap_keys() {
  return kPodSwapKeys;
}

void read_pod_swap(const Section& headroom, Config& config) {
  const auto section = headroom.map("podSwap");
  if (!section) return;
  section->reject_unknown_keys(kPodSwapKeys);
  config.pod_swap.high = read_percentage(*section, "high", "25%");
  if (const auto writeback = section->boolean("zswapWriteback"))
    config.pod_swap.zswap_writeback = *writeback;
  if (const auto priority =
          section->integer("protectedPriority", std::numeric_limits<std::int32_t>::min(),
                           kSystemCriticalPriority - 1))
    config.pod_swap.protected_priority = static_cast<std::int32_t>(*priority);
}

}  // namespace headroom::config
