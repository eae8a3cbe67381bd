// SPDX-License-Identifier: Apache-2.0
// Knobs as systemd's properties.
#include "act/units/unit_properties.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::act {

void PrintTo(const UnitProperty& property, std::ostream* out) {
  *out << property.name;
}

namespace {

using namespace std::chrono_literals;
constexpr std::uint64_t kInfinity = ~std::uint64_t{0};

TEST(UnitProperties, HaveSystemdsNamesAndUnits) {
  const CgroupValues values{.cpu_weight = CpuWeight{39},
                            .cpu_max = CpuMax{.quota = Microseconds(50'000)},
                            .memory_min = 1_MiB,
                            .memory_low = 2_MiB,
                            .memory_high = 3_MiB,
                            .memory_max = Limit<Bytes>::max(),
                            .memory_swap_max = Bytes{0},
                            .memory_oom_group = true,
                            .pids_max = Tasks{100},
                            .hugetlb_max = {{2_MiB, Bytes{0}}}};
  const UnitProperties expected{{"CPUWeight", std::uint64_t{39}},
                                {"CPUQuotaPeriodUSec", std::uint64_t{100'000}},
                                {"CPUQuotaPerSecUSec", std::uint64_t{500'000}},
                                {"MemoryMin", std::uint64_t{1 << 20}},
                                {"MemoryLow", std::uint64_t{2 << 20}},
                                {"MemoryHigh", std::uint64_t{3 << 20}},
                                {"MemoryMax", kInfinity},
                                {"MemorySwapMax", std::uint64_t{0}},
                                {"TasksMax", std::uint64_t{100}}};
  EXPECT_EQ(unit_properties(values), expected);
}

TEST(UnitProperties, AreEmptyForEmptyValues) {
  EXPECT_EQ(unit_properties({}), UnitProperties{});
}

// systemd multiplies back and rounds down.
TEST(UnitProperties, AQuotaSurvivesTheWayThroughSeconds) {
  for (const std::int64_t period : {1'000, 12'345, 33'333, 100'000, 1'000'000})
    for (const std::int64_t quota : {1'000, 1'001, 33'333, 50'000, 123'456}) {
      const auto all = unit_properties(
          {.cpu_max = CpuMax{.quota = Microseconds(quota), .period = Microseconds(period)}});
      const auto per_second = static_cast<std::int64_t>(std::get<std::uint64_t>(all[1].value));
      EXPECT_EQ(per_second * period / 1'000'000, quota) << quota << " of " << period;
    }
}

TEST(UnitProperties, WithoutAQuotaThereIsNoLimit) {
  const auto all = unit_properties({.cpu_max = CpuMax{}});
  EXPECT_EQ(std::get<std::uint64_t>(all[1].value), kInfinity);
}

TEST(ControllerProperties, EnableTheControllersAndLimitNothing) {
  const std::vector<std::string> all{"cpu", "cpuset", "io", "memory", "pids"};
  const UnitProperties expected{{"CPUWeight", std::uint64_t{100}},
                                {"AllowedCPUs", std::vector<std::uint8_t>{0x0f, 0x02}},
                                {"IOAccounting", true},
                                {"MemoryAccounting", true},
                                {"TasksAccounting", true}};
  EXPECT_EQ(controller_properties(all, CpuSet{0, 1, 2, 3, 9}), expected);
  EXPECT_EQ(controller_properties({}, CpuSet{0}), UnitProperties{});
}

}  // namespace
}  // namespace headroom::act
