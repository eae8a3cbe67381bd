// SPDX-License-Identifier: Apache-2.0
#include "observe/node/zone_reserve.h"

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

// A machine of 4 GiB, shortened.
constexpr const char* kFourGiB =
    "Node 0, zone      DMA\n"
    "  per-node stats\n"
    "      nr_inactive_anon 17\n"
    "  pages free     3712\n"
    "        boost    0\n"
    "        min      64\n"
    "        low      80\n"
    "        managed  3840\n"
    "        protection: (0, 1930, 3907, 3907, 3907)\n"
    "    cpu: 0\n"
    "              count: 0\n"
    "Node 0, zone    DMA32\n"
    "  pages free     10227\n"
    "        min      8301\n"
    "        managed  494315\n"
    "        protection: (0, 0, 1976, 1976, 1976)\n"
    "Node 0, zone   Normal\n"
    "  pages free     8394\n"
    "        min      8529\n"
    "        managed  505986\n"
    "        protection: (0, 0, 0, 0, 0)\n"
    "Node 0, zone  Movable\n"
    "  pages free     0\n"
    "        min      32\n"
    "        managed  0\n"
    "        protection: (0, 0, 0, 0, 0)\n";

TEST(ZoneReserve, IsTheMinWatermarksAndWhatLowerZonesKeep) {
  std::istringstream zoneinfo(kFourGiB);
  // All of DMA, which is smaller than what it keeps; nothing of an empty zone.
  EXPECT_EQ(reserved_pages(zoneinfo), 3840u + (8301 + 1976) + 8529);
}

TEST(ZoneReserve, IsUnknownWithoutZones) {
  for (const char* text : {"", "Node 0, zone DMA\n", "nonsense\n        managed  x\n"}) {
    std::istringstream zoneinfo(text);
    EXPECT_EQ(reserved_pages(zoneinfo), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace headroom::observe
