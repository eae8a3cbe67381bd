// SPDX-License-Identifier: Apache-2.0
// plan_suppress(): which pods' CPU time is suppressed (cpu.idle) while pods with a guarantee lose
// time to the node's shortage of CPUs (headroom.cpuSuppress). Pure: the time and all readings are
// arguments.
//
// BestEffort pods can be suppressed, and Burstable pods up to a priority: the batch pods. The least
// important are suppressed first, all of one importance in one step. A step follows when the
// windows after the last one still show contention. The most important are released first.
#pragma once

#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>

namespace headroom::judge_limits {

struct SuppressPolicy {
  // Pods are suppressed if more than this share of a window is lost; absent: none is.
  std::optional<float> threshold{};
  // Pods are suppressed at all times, whatever is lost.
  bool always = false;
  // Burstable pods of at most this priority are batch pods; absent: none is.
  std::optional<std::int32_t> batch_priority{};

  bool is_on() const { return always || threshold; }
  friend bool operator==(const SuppressPolicy&, const SuppressPolicy&) = default;
};

// Less is suppressed first: a lower priority, then a BestEffort pod before a Burstable one.
struct Importance {
  std::int32_t priority = 0;
  bool burstable = false;
  friend auto operator<=>(const Importance&, const Importance&) = default;
};

// Absent: the pod is never suppressed. It is Guaranteed, system-critical or static, Burstable above
// the batch priority, or its description is not known yet.
std::optional<Importance> suppressible(const SuppressPolicy& policy, const PodReading& pod);

// A pod during one window.
struct SuppressReading {
  std::optional<Importance> importance{};  // absent: never suppressed
  // The share of the window in which it waited because the node had no CPU left, or because
  // interrupts took it; absent: unknown.
  std::optional<double> waited{};
  bool runs = false;  // it used CPU time worth suppressing
};

// After the first suppression; doubled when contention returns within this time of a release.
inline constexpr Duration kFirstHold = std::chrono::minutes(1);
inline constexpr Duration kLongestHold = std::chrono::minutes(16);
// Two windows: the first one after a step began before it.
inline constexpr Duration kSuppressSettle = std::chrono::seconds(10);

struct SuppressHistory {
  // Pods of this importance and of less are suppressed; absent: none is.
  std::optional<Importance> level{};
  Instant changed_at{};                  // of `level`
  std::optional<Instant> calm_since{};   // contention is low enough since then
  std::optional<Instant> released_at{};  // the last release
  Duration hold = kFirstHold;            // contention must be low for so long before a release

  bool suppresses(const Importance& importance) const { return level && importance <= *level; }
};

// The contention that counts before pods of this importance are suppressed: the longest wait of the
// pods with a guarantee that are more important. 0: there is no such pod; absent: unknown.
std::optional<double> contention_above(const Importance& importance,
                                       std::span<const SuppressReading> pods);

// At the end of each window. Updates `history`; `level` says what to do.
void plan_suppress(const SuppressPolicy& policy, Instant at, std::span<const SuppressReading> pods,
                   SuppressHistory& history);

}  // namespace headroom::judge_limits
