// SPDX-License-Identifier: Apache-2.0
// Story: a node walked through stepped instants, for tests of the judge and the engine.
#pragma once

#include "recording/tape.h"

#include <headroom/judge.h>
#include <headroom/snapshot.h>

#include <initializer_list>
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

// "signal < value", of any signal.
Threshold below(Signal signal, std::int64_t value, Duration grace = Duration::zero());

// What a node reads at an instant, signal by signal: available of capacity.
struct Sample {
  Signal signal;
  std::int64_t available;
  std::int64_t capacity = kCapacity;
};

// A node with pods; the test changes it and asks the judge. Every story is recorded, and replayed
// when it is over: the same decisions must come of it, bit for bit.
class Story {
 public:
  explicit Story(Policy the_policy) : policy(std::move(the_policy)) {}
  ~Story();
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  // Adds a pod with a fresh cgroup id; returns its index.
  std::size_t pod(const std::string& name, Bytes working_set, Bytes request = {},
                  std::int32_t priority = 0);
  hr_record& record(std::size_t pod) { return records_[pod]; }
  PodReading& reading(std::size_t pod) { return readings_[pod]; }
  void remove_pod(std::size_t pod);

  // The node now, with so much memory.available; absent: the reading is missing.
  Snapshot snapshot(std::int64_t ms, std::optional<Bytes> available, bool with_cgroups = true);
  // Judges that snapshot and moves history on; acts succeed unless `result` says otherwise.
  const Verdict& step(std::int64_t ms, std::optional<Bytes> available,
                      Outcome::Result result = Outcome::Result::kDone);

  // The same with any signals' readings.
  const Verdict& step(std::int64_t ms, std::initializer_list<Sample> samples,
                      Outcome::Result result = Outcome::Result::kDone);
  // What the pod's files take, as if measured then.
  void uses_disk(std::size_t pod, std::int64_t ms, Bytes volume, std::int64_t inodes = 1);
  DiskUsage& disk(std::size_t pod) { return *disks_[pod]; }
  // What is known of the inside of the pod, from now on.
  PodParts& parts(std::size_t pod);
  // Adds a container that holds so much, all of it its processes'. Good until the next.
  PartReading& container(std::size_t pod, Bytes held, Bytes request = {});
  // The pod's processes that were killed alone have exited.
  void processes_exit(std::size_t pod, std::int64_t ms);
  // The end of an act that had been started.
  void ended(Act act, std::int64_t ms, int error = 0);

  // "kill hog", "terminate web": the decisions of the last step.
  std::vector<std::string> decided() const;
  // What was recorded so far, as a file of its own.
  std::string recorded();

  Policy policy;
  History history;
  Verdict verdict;
  ImageStorage images;
  std::optional<ByCgroup<CpuUse>> cpu_use;  // of each step: it ends a window of CPU waits
  std::optional<SwapReading> swap;          // read at each step, at its instant; absent: no swap
  Bytes memory_error;                       // of memory.available, at each step
  std::optional<Bytes> page_tables;         // of the node, at each step

 private:
  const Verdict& run_judge(const Snapshot& snapshot, Outcome::Result result);
  std::vector<hr_record> records_;
  std::vector<PodReading> readings_;
  std::vector<std::shared_ptr<DiskUsage>> disks_;  // null: not measured
  std::vector<std::shared_ptr<PodParts>> parts_;   // null: not asked for
  std::vector<Decision> started_;
  void sync_tape(Instant at);

  recording::TapeWriter tape_;
  std::string recorded_;
  std::string state_at_last_turn_;  // policy and history as the tape knows them
  std::vector<Outcome> ended_;
  std::uint64_t next_id_ = 100;
};

}  // namespace headroom::test
