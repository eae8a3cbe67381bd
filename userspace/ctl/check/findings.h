// SPDX-License-Identifier: Apache-2.0
// Findings: what the facts of a host mean for running headroom there. Pure.
#pragma once

#include "ctl/check/host_facts.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl::check {

enum class State : std::uint8_t {
  kOk,
  kLimited,  // headroom works with fewer functions
  kMissing,  // essential: headroom does not work
  kUnknown,  // it could not be checked
};
std::string_view name(State state);

struct Finding {
  std::string_view subject;
  State state = State::kOk;
  std::string found;
  // Empty if the state is kOk:
  std::string cost;
  std::string remedy;
};

std::vector<Finding> findings(const HostFacts& facts);

// Whether nothing essential is missing.
bool works(const std::vector<Finding>& findings);

}  // namespace headroom::ctl::check
