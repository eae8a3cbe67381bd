// SPDX-License-Identifier: Apache-2.0
// headroomctl why: one eviction of the audit log, explained.
#pragma once

#include "ctl/common/cli_command.h"

#include <headroom/result.h>

#include <cstddef>
#include <deque>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::ctl {

// Which one is meant.
struct EvictionQuery {
  std::string pod;                // "namespace/name", name or uid; empty: any
  std::size_t nth_from_last = 1;  // of them the so-manieth from the end
};

struct FoundEviction {
  nlohmann::json record;
  nlohmann::json flight_recording{};  // the document of its last minute; null: none
  std::size_t matches = 0;            // evictions that answer to the name, this one among them
};

// The record asked for; an error says what there is instead.
Result<FoundEviction> find_eviction(const std::deque<std::string>& lines,
                                    const EvictionQuery& query);

void add_why(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
