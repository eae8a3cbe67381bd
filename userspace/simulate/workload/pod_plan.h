// SPDX-License-Identifier: Apache-2.0
// PodPlan: a pod of the simulation: when it arrives, what it requests, how long it runs, and how
// much memory it holds at each moment of its run.
#pragma once

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::simulate {

// Recorded memory use: a value at each of these times, counted from the first; between two of them
// it is taken to change evenly.
struct MemorySeries {
  std::string name;
  std::vector<Duration> at;    // ascending; the first is zero
  std::vector<double> values;  // as many as `at`; in bytes, or as shares of `limit`
  double limit = 0;            // in the unit of `values`; 0: not known
};

// Generated memory use. Each step is drawn from the pod's own random numbers.
struct MemoryModel {
  double typical = 0;  // bytes
  double daily = 0;    // amplitude of the daily wave, as a share of `typical`
  double noise = 0;    // standard deviation of a step, as a share of `typical`
  // The pod's one burst: from this age on it takes memory at `burst_rate` until it holds
  // `burst_to`, and keeps it. Zero rate: it has none.
  Duration burst_at{0};
  double burst_rate = 0;  // bytes per second
  double burst_to = 0;    // bytes
};

struct PodPlan {
  std::uint64_t id = 0;  // unique in a simulation; the key of its random numbers
  Instant arrives;
  Duration runs{0};  // from its start until it ends by itself
  // A job starts anew, and its work is lost, if it is ended early. A service is replaced by a pod
  // that ends when the first would have.
  bool job = false;
  std::uint8_t attempts = 0;  // of a job, that were ended early
  QosClass qos = QosClass::kBestEffort;
  std::int32_t priority = 0;
  std::int64_t milli_cpu = 0;                  // requests.cpu
  Bytes memory_request;                        // zero: none
  std::optional<Bytes> memory_limit;           // absent: none
  double cache_share = 0;                      // of its working set: active page cache
  Duration exit_time{0};                       // after SIGTERM, when it exits by itself
  Duration age_at_arrival{0};                  // it ran before the simulation began
  MemoryModel model;                           // used without `series`
  std::shared_ptr<const MemorySeries> series;  // repeated from its start when it is over
  Duration series_offset{0};                   // where in `series` its run begins
  double series_scale = 1;                     // bytes of the pod for each byte of `series`
};

// From now on the memory changes evenly until the age `until`; then the pod holds `level` bytes.
struct Segment {
  Duration until{0};
  double level = 0;
};

// What a pod holds at the start of its run.
double first_level(const PodPlan& plan);
// The segment that begins at this age with `level`. `clock`: the time of day at this age.
Segment next_segment(const PodPlan& plan, Duration age, double level, Instant clock);

// The time between two steps of a generated use.
inline constexpr Duration kModelStep = std::chrono::minutes(1);

// The pod as the daemon reads it from a manifest.
std::shared_ptr<const Pod> describe(const PodPlan& plan);

}  // namespace headroom::simulate
