// SPDX-License-Identifier: Apache-2.0
// PodMemoryRequest: what a sweep says of pods with cold memory.
#include "daemon/limits/pod_memory_request.h"

#include <headroom/cgroup_record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::daemon {
namespace {

struct Names final : report::CgroupNames {
  std::string_view path_of(CgroupId) const override { return "/pod"; }
  std::uint64_t started_ns(CgroupId) const override { return HR_UNKNOWN; }
};

// A pod of 100 MiB over its request of none, on a node with 400 MiB of swap.
struct ColdMemoryRequest : ::testing::Test {
  ColdMemoryRequest() {
    record.valid = HR_MEMORY_USAGE | HR_MEMORY_STAT | HR_RECLAIM;
    record.populated = 1;
    record.memory_usage = 100 << 20;
    record.inactive_file = record.swap_usage = 0;
    config.pod_memory.cold.below = 0.5F;
    config.pod_swap.high = 0.25F;
    pod.declared_qos = QosClass::kBurstable;
    of(snapshot.observations, Signal::kSwapAvailable) =
        Observation{.available = 0, .capacity = 400 << 20, .at = {}};
  }
  // MiB.
  std::optional<std::int64_t> swap_room(std::uint64_t swapped) {
    record.swap_usage = swapped << 20;
    PodReading reading{
        .pod = std::make_shared<Pod>(pod), .cgroup = CgroupId{2}, .memory_request = {}};
    reading.record = &record;
    const std::vector pods{reading};
    snapshot.cgroups = std::span(&record, 1);
    snapshot.pods = pods;
    const auto request = pod_memory_request(config, snapshot, {}, Names());
    EXPECT_EQ(request.over_request.size(), 1u);
    const auto room = request.over_request.at(0).swap_room;
    return room ? std::optional(*room >> 20) : std::nullopt;
  }

  config::Config config;
  hr_record record = unknown_record(2, 1);
  Pod pod;
  Snapshot snapshot{};
};

TEST_F(ColdMemoryRequest, IsPushedNoFurtherThanItsShareOfSwap) {
  EXPECT_EQ(swap_room(60), 27) << "an eighth below the 100 MiB at which it is slowed down";
  EXPECT_EQ(swap_room(88), 0);
  EXPECT_EQ(swap_room(120), 0);
}

TEST_F(ColdMemoryRequest, APodWithoutSuchALimitHasNone) {
  pod.declared_qos = QosClass::kGuaranteed;
  EXPECT_EQ(swap_room(60), std::nullopt) << "it is never slowed down";
  pod.declared_qos = QosClass::kBurstable;
  config.pod_swap = {};
  EXPECT_EQ(swap_room(60), std::nullopt);
}

}  // namespace
}  // namespace headroom::daemon
