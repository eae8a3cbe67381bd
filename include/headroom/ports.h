// SPDX-License-Identifier: Apache-2.0
// Observer and Actuator: the engine's interfaces to the host; tests replace them.
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
  kCgroups,   // also one pass over every cgroup; readings of idle cgroups may be old
  kDecision,  // and all values that ranking uses are current, also those of idle cgroups
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Reads the node now. Spans in the snapshot are valid until the next take_snapshot(). A reading
  // that fails is absent from the snapshot and counted; take_snapshot() itself does not fail.
  virtual Snapshot take_snapshot(SnapshotScope depth) = 0;
  // Requests a measurement of the pods' disk usage; the result is in a later snapshot.
  virtual void measure_disks() {}
};

class Actuator {
 public:
  virtual ~Actuator() = default;
  // Opens the descriptors that a kill of any of these pods needs; closes those of pods that are no
  // longer listed.
  virtual void update_kill_fds(std::span<const PodReading> pods) = 0;
  // Allocates nothing, and never waits for the victim.
  virtual Outcome act(const Decision& decision) = 0;
  // The outcomes of asynchronous acts that have ended.
  virtual void collect(std::vector<Outcome>& ended) { ended.clear(); }
};

}  // namespace headroom
