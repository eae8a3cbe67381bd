// SPDX-License-Identifier: Apache-2.0
#include "recording/limit_plans.h"

#include "recording/shapes.h"

namespace headroom::recording {

template <>
inline constexpr std::uint64_t kEnumerators<judge_limits::Brake> = 3;

namespace {

using judge_limits::LimitHistory;
using judge_limits::LimitPlan;
using judge_limits::LimitPolicy;
using judge_limits::LimitReading;

constexpr float kHighestCeiling = 10;  // headroom.podLimits.rescue.ceiling
// So that the highest limit of a damaged recording fits into 64 bits as well.
constexpr std::int64_t kLargestSize = kLargest / 16;
constexpr bool is_size(std::optional<std::int64_t> bytes) {
  return !bytes || (0 <= *bytes && *bytes <= kLargestSize);
}

}  // namespace

// As in shapes.h: every member, taken apart by a structured binding.
#define HEADROOM_SERIALIZE(Type)  \
  template <class Io, Is<Type> T> \
  void put(Io& io, T& value)

HEADROOM_SERIALIZE(LimitPolicy) {
  auto& [reclaim, ceiling, fastest_fill] = value;
  io(reclaim, ceiling, fastest_fill);
  require(io, !ceiling || (*ceiling >= 0 && *ceiling <= kHighestCeiling));
  require(io, fastest_fill > 0 && is_possible(fastest_fill));
}
HEADROOM_SERIALIZE(LimitReading) {
  auto& [at, usage, max, held, reclaimed] = value;
  io(at, usage, max, held, reclaimed);
  require(io, is_size(usage) && is_size(max) && is_size(held));
}
HEADROOM_SERIALIZE(LimitHistory) {
  auto& [last, fill_rate, original, raised_at] = value;
  io(last, fill_rate, original, raised_at);
  require(io, is_size(original));
}
HEADROOM_SERIALIZE(LimitPlan) {
  auto& [reclaim, raise_to, lower_to, brake, next] = value;
  io(reclaim, raise_to, lower_to, brake, next);
}
HEADROOM_SERIALIZE(PlannedLimit) {
  auto& [cgroup, policy, before, reading, room, plan] = value;
  io(cgroup, policy, before, reading, room, plan);
  require(io, !room || is_possible(*room));
}

#undef HEADROOM_SERIALIZE

void write(Writer& io, const LimitPlans& made) {
  io(made.lost, made.plans);
}

void read(Reader& io, LimitPlans& made) {
  io(made.lost, made.plans);
}

bool is_same_again(const PlannedLimit& planned) {
  const LimitHistory history = judge_limits::advance(planned.before, planned.reading);
  return judge_limits::plan_limit(planned.policy, planned.reading, history, planned.room) ==
         planned.plan;
}

}  // namespace headroom::recording
