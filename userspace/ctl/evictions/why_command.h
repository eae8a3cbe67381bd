// SPDX-License-Identifier: Apache-2.0
// headroomctl why: explains one eviction of the audit log.
#pragma once

#include "ctl/common/cli_command.h"

#include <headroom/result.h>

#include <cstddef>
#include <deque>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::ctl {

// Selects an eviction.
struct EvictionQuery {
  std::string pod;                // "namespace/name", name or uid; empty: any
  std::size_t nth_from_last = 1;  // 1: the last of the matching evictions
};

struct FoundEviction {
  nlohmann::json record;
  nlohmann::json flight_recording{};  // the minute before it; null if there is none
  std::size_t matches = 0;            // matching evictions, including this one
};

// Finds the record. An error says what the log has instead.
Result<FoundEviction> find_eviction(const std::deque<std::string>& lines,
                                    const EvictionQuery& query);

void add_why(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
