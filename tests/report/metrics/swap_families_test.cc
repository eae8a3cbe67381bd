// SPDX-License-Identifier: Apache-2.0
// What /metrics has of memory and swap together, on a node where that is known.
#include "report/golden.h"
#include "report/metrics/exposition/exposition_text.h"
#include "report/metrics/metrics.h"
#include "report/sample.h"

#include <headroom/swap_room.h>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

Families families_of(const std::optional<SwapRoom>& room) {
  NodeView node = test::sample_node();
  node.swap_room = room;
  Families families;
  add_node_families(node, test::sample_at(10'250), families);
  return families;
}

// Each number is another one, so that no series can show another's.
TEST(MetricsOfSwap, ReadAsTheGoldenText) {
  const SwapRoom room{.available = 101,
                      .kubelet = 102,
                      .memory = 103,
                      .gain = 104,
                      .filling = 105,
                      .bound = SwapRoom::Bound::kRoom,
                      .in_force = true,
                      .fill_rate = 106.5,
                      .stalled = 0.25,
                      .pods_stalled = 0.5,
                      .refault_rate = 107,
                      .reclaim_rate = 108,
                      .resident = 109,
                      .cold = 110,
                      .compressed = 111,
                      .compressed_size = 112,
                      .incompressible = 113,
                      .on_disk = 114};
  const Families others = families_of(std::nullopt);
  std::string text;
  for (const auto& family : families_of(room)) {
    const bool is_other = std::any_of(others.begin(), others.end(),
                                      [&](const auto& each) { return each.name == family.name; });
    if (!is_other) append_family(text, Format::kText, family);
  }
  test::expect_golden("metrics/swap.prom", text);
}

}  // namespace
}  // namespace headroom::report
