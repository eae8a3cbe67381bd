// SPDX-License-Identifier: Apache-2.0
// plan_burst(): whether a pod may use CPU time that it saved of its own quota (cpu.max.burst),
// while its CPUs are idle and within a budget of the node (headroom.cpuBurst). Pure: the time and
// all readings are arguments.
#pragma once

#include <headroom/units.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace headroom::judge_limits {

struct BurstPolicy {
  // The sum of all grants, as a share of the node's CPUs; absent: nothing is granted.
  std::optional<float> budget{};
  // A pod's CPUs are contended if they are busy for more than this share of the time.
  float contended = 0.9F;

  friend bool operator==(const BurstPolicy&, const BurstPolicy&) = default;
};

// Of one pod, since the last reading.
struct BurstReading {
  Instant at{};
  std::optional<double> busy{};  // share of the time of its CPUs; absent: unknown
  bool throttled = false;        // by its own quota
  bool bursting = false;         // it used more than its quota in a period
  double quota = 0;              // CPUs, of its outermost cgroups with a quota
  std::optional<double> used{};  // CPUs; absent: not read since the last time
};

struct BurstHistory {
  double granted = 0;                   // CPUs; 0: nothing
  Instant needed_at{};                  // it was throttled, or used what was granted
  std::optional<Instant> calm_since{};  // its CPUs are idle enough since then
  int contended = 0;                    // readings in a row
  std::optional<double> used{};         // CPUs, a mean over kMeanUse
  std::optional<Instant> used_at{};
};

// A reading takes this long; a grant ends after the second reading in a row of a contended CPU.
inline constexpr Duration kBurstPeriod = std::chrono::milliseconds(200);
inline constexpr int kContendedReadings = 2;

// A pod's mean use is an average that forgets within about this time.
inline constexpr Duration kMeanUse = std::chrono::seconds(10);

enum class BurstStep : std::uint8_t { kKeep, kGrant, kWithdraw };
struct BurstPlan {
  BurstStep step = BurstStep::kKeep;
  double cpus = 0;  // to grant
};
// `room`: CPUs that the budget has left; below 0: too much is granted. Updates `history`, but for
// what was granted: the caller sets that once it is done.
BurstPlan plan_burst(const BurstPolicy& policy, const BurstReading& reading, double room,
                     BurstHistory& history);

}  // namespace headroom::judge_limits
