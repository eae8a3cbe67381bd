// SPDX-License-Identifier: Apache-2.0
// Replay: the judge asked again, turn by turn, and its answers beside those on record. Pure: the
// same recording and policy give the same answer, anywhere.
#pragma once

#include "recording/tape.h"

#include <headroom/judge.h>
#include <headroom/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace headroom::recording {

// What was decided at one turn, there and here.
struct ReplayedTurn {
  Instant at;
  std::vector<Decision> recorded;
  std::vector<Decision> replayed;
  // The same acts on the same pods, in the same order.
  bool same_acts = true;
  // And bit for bit the same decisions and eviction ends.
  bool identical = true;
};

// Plans for cgroups near their own limits (LimitPlans).
struct ReplayedLimits {
  std::uint64_t plans = 0;
  std::uint64_t different = 0;  // of them
  std::uint64_t lost = 0;       // that are not in the recording
};

struct Replayed {
  std::vector<ReplayedTurn>
      answers;  // of turns at which anything was decided or ended, there or here
  std::uint64_t turns = 0;
  std::uint64_t lost = 0;  // turns that are not in the recording
  std::uint64_t extra_sweeps =
      0;                  // looks the replay would have taken closer than the recording did
  ReplayedLimits limits;  // by another policy: none
  Instant first, last;
  bool cut_short = false;

  bool same_acts() const;
  bool identical() const;
};

// The policy to replay by, given the recording's own. Absent: that one, and its outcomes are fed.
using PolicyOverride = std::function<Policy(const Policy& recorded, ImageStorage images)>;

// An error: the recording is damaged.
Result<Replayed> replay(TapeReader& tape, const PolicyOverride& other = nullptr);

}  // namespace headroom::recording
