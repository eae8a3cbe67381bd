// SPDX-License-Identifier: Apache-2.0
// What the cgroups outside of the pods use in recordings of one node, or of nodes that are alike,
// for judge/advice/reserve_advice.h.
#pragma once

#include "judge/advice/reserve_advice.h"
#include "recording/tape.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace headroom::ctl {

// Indexes of the arrays below.
enum Reserve : std::uint8_t { kKubeReserved, kSystemReserved, kReserves };
enum ReservedResource : std::uint8_t { kCpu, kMemory, kPids, kReservedResources };

template <class Value>
using OfResources = std::array<Value, kReservedResources>;
template <class Value>
using OfReserves = std::array<Value, kReserves>;

// For each step: thousandths of a CPU (the mean), bytes and tasks (the highest). A step in which a
// resource was not read, or for less than half of the time, is left out.
using StepSeries = OfResources<std::vector<double>>;

struct ReservedUse {
  // By path; without what is used in cgroups below it that the recording has as well. "/" is what
  // is used in no other of its cgroups: by the kernel, and by processes of the root.
  std::map<std::string, StepSeries> cgroups;
  StepSeries sum;
  std::uint64_t limit_hits = 0;  // at memory.max of these cgroups
};

struct RecordedReserves {
  OfReserves<ReservedUse> use;
  recording::NodeReserves present;  // of the last recording
  OfResources<double> capacity{};   // of the node; 0: unknown, as that of the CPUs always is
  Duration recorded{0};             // from the first sweep to the last, of all recordings together

  std::size_t steps() const;  // of the resource that has the most
};

// Adds a recording to what was read of others. Errors: the recording is damaged, has no use of
// system cgroups, has pods but not their cgroup, or is of a node with another amount of memory.
Result<> add_recording(recording::TapeReader& tape, RecordedReserves& to);

}  // namespace headroom::ctl
