// SPDX-License-Identifier: Apache-2.0
// Story: a node walked through stepped instants, for tests of the judge and the engine.
#pragma once

#include <headroom/judge.h>
#include <headroom/snapshot.h>

#include <memory>
#include <string>
#include <vector>

namespace headroom::test {

inline constexpr std::int64_t kCapacity = std::int64_t{4} << 30;

inline Instant at_ms(std::int64_t ms) {
  return Instant(std::chrono::milliseconds(ms));
}

// "memory.available < value", hard unless a grace is given.
Threshold memory_below(Bytes value, Duration grace = Duration::zero());

// A node with pods; the test changes it and asks the judge.
class Story {
 public:
  explicit Story(Policy the_policy) : policy(std::move(the_policy)) {}

  // Adds a pod with a fresh cgroup id; returns its index.
  std::size_t pod(const std::string& name, Bytes working_set, Bytes request = {},
                  std::int32_t priority = 0);
  hr_record& record(std::size_t pod) { return records_[pod]; }
  PodReading& reading(std::size_t pod) { return readings_[pod]; }
  void vanish(std::size_t pod);

  // The node now, with so much memory.available; absent: the reading is missing.
  Snapshot snapshot(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups = true);
  // Judges that snapshot and moves history on; acts succeed unless `result` says otherwise.
  const Verdict& step(std::int64_t ms, std::optional<Bytes> available,
                      Outcome::Result result = Outcome::Result::kDone);

  // "kill hog", "terminate web": the decisions of the last step.
  std::vector<std::string> decided() const;

  Policy policy;
  History history;
  Verdict verdict;

 private:
  std::vector<hr_record> records_;
  std::vector<PodReading> readings_;
  std::uint64_t next_id_ = 100;
};

}  // namespace headroom::test
