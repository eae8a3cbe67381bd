// SPDX-License-Identifier: Apache-2.0
// Refusal: why a container does not get its exclusive CPUs (KUBELET.md 5.3, 6).
#pragma once

#include "judge/cpuset/take.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace headroom {

// full-pcpus-only: not a multiple of a core, or too few CPUs on cores that nothing is reserved of.
struct SmtAlignmentError {
  int requested = 0;
  int cpus_per_core = 0;
  std::optional<int> available{};  // physical CPUs, where these are too few
  friend bool operator==(const SmtAlignmentError&, const SmtAlignmentError&) = default;
};

// The topology manager's policy does not admit what the hints merged to.
struct TopologyAffinityError {
  friend bool operator==(const TopologyAffinityError&, const TopologyAffinityError&) = default;
};

using Refusal = std::variant<SmtAlignmentError, TopologyAffinityError, NotEnoughCpus>;

// status.reason of the pod that fails, and what its message says.
std::string_view reason(const Refusal& refusal);
std::string message(const Refusal& refusal);

}  // namespace headroom
