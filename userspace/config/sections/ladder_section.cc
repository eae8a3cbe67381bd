// SPDX-License-Identifier: Apache-2.0
#include "config/sections/ladder_section.h"

#include "config/yaml/percentage.h"
#include "config/yaml/positive_duration.h"

#include <array>
#include <span>
#include <string>

namespace headroom::config {
namespace {

constexpr std::array<std::string_view, 3> kSteps{"reclaim", "squeeze", "stuck"};
constexpr std::array<std::string_view, 2> kReclaimKeys{"margin", "step"};
constexpr std::array<std::string_view, 2> kSqueezeKeys{"margin", "longest"};
constexpr std::array<std::string_view, 3> kStuckKeys{"after", "relaxFor", "evict"};

void read_reclaim_step(const Section& reclaim, LadderPolicy& ladder) {
  reclaim.reject_unknown_keys(kReclaimKeys);
  ladder.reclaim_margin = read_percentage(reclaim, "margin", "5%");
  const auto step = reclaim.quantity("step");
  if (!step) return;
  // Each is one write, and an interrupted one cannot be told from a finished one.
  constexpr std::int64_t kLeast = std::int64_t{4} << 20, kMax = std::int64_t{1} << 30;
  if (step->value() >= kLeast && step->value() <= kMax)
    ladder.reclaim_step = Bytes{step->value()};
  else
    reclaim.complain("step", "must be from 4Mi to 1Gi");
}

void read_squeeze(const Section& squeeze, LadderPolicy& ladder) {
  squeeze.reject_unknown_keys(kSqueezeKeys);
  ladder.squeeze_margin = read_percentage(squeeze, "margin", "3%");
  read_positive(squeeze, "longest", ladder.squeeze_longest);
}

void read_stuck(const Section& stuck, LadderPolicy& ladder) {
  stuck.reject_unknown_keys(kStuckKeys);
  if (const auto after = stuck.duration("after")) {
    if (*after > Duration::zero())
      ladder.stuck_after = *after;
    else
      stuck.complain("after", "must be more than zero");
  }
  if (const auto relax = stuck.duration("relaxFor")) {
    if (*relax >= Duration::zero())
      ladder.relax_for = *relax;
    else
      stuck.complain("relaxFor", "must not be negative");
  }
  if (const auto evict = stuck.boolean("evict")) ladder.evict_stuck = *evict;
  if (ladder.evict_stuck && !ladder.stuck_after) stuck.complain("evict", "needs after beside it");
}

}  // namespace

std::vector<std::string> ladder_keys() {
  std::vector<std::string> paths;
  const auto add = [&](std::string_view step, std::span<const std::string_view> keys) {
    for (const std::string_view key : keys)
      paths.push_back(std::string(step) + "." + std::string(key));
  };
  add("reclaim", kReclaimKeys);
  add("squeeze", kSqueezeKeys);
  add("stuck", kStuckKeys);
  return paths;
}

void read_ladder(const Section& headroom, Policy& policy) {
  const auto ladder = headroom.map("ladder");
  if (!ladder) return;
  ladder->reject_unknown_keys(kSteps);
  if (const auto reclaim = ladder->map("reclaim")) read_reclaim_step(*reclaim, policy.ladder);
  if (const auto squeeze = ladder->map("squeeze")) read_squeeze(*squeeze, policy.ladder);
  if (const auto stuck = ladder->map("stuck")) read_stuck(*stuck, policy.ladder);
}

}  // namespace headroom::config
