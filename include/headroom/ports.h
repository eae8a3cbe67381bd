// SPDX-License-Identifier: Apache-2.0
// Observer and Actuator: the interfaces that the engine needs of the host; tests replace them.
#pragma once

#include <headroom/decision.h>
#include <headroom/judge.h>
#include <headroom/result.h>
#include <headroom/snapshot.h>

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

enum class SnapshotScope : std::uint8_t {
  kNode,      // node-level signals only: O(1)
  kCgroups,   // one pass over every cgroup as well; of one that slept a reading may be old
  kDecision,  // and what ranking goes by is of this very instant, of sleepers too
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Reads the world as of now. Spans in the snapshot stay good until the next look(). A reading
  // that fails is absent from the snapshot and counted; look() itself does not fail.
  virtual Snapshot take_snapshot(SnapshotScope depth) = 0;
  // Pods' disk usage is wanted now; what comes of it is in a later snapshot.
  virtual void measure_disks() {}
};

class Actuator {
 public:
  virtual ~Actuator() = default;
  // Opens beforehand what a kill of any of these will need; drops what is no longer listed.
  virtual void update_kill_fds(std::span<const PodReading> pods) = 0;
  // Allocates nothing. Never waits for the victim.
  virtual Outcome act(const Decision& decision) = 0;
  // The ends of acts that had only been started.
  virtual void collect(std::vector<Outcome>& ended) { ended.clear(); }
};

}  // namespace headroom
