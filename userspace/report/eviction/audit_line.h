// SPDX-License-Identifier: Apache-2.0
// Audit line: an Eviction as one JSON object: what was read and when, which pods were ranked and
// why, what was done, how long it took and how much came back.
//
// Times are nanoseconds of CLOCK_BOOTTIME; null means "did not happen" or "unknown", never zero.
#pragma once

#include "base/clock.h"
#include "report/eviction/eviction.h"
#include "report/view/node_view.h"

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// Renames the fields of eviction records that headroomd 0.1 and earlier wrote, so that a log that
// began before an update can be read completely. Records of this version stay as they are.

// Renames in place; a record that is not an object stays as it is.
void rename_old_fields(nlohmann::json& record);

// The same for a line of the log, without its newline. Text that is not JSON stays as it is.
std::string with_new_fields(std::string line);

// The wall time of an instant, computed from the current values of both clocks.
WallTime wall_time_of(Instant instant);

// `flight_recording`: its file, relative to the log's directory; empty: none.
nlohmann::ordered_json audit_json(const Eviction& eviction, WallTime decided_at, QosOf qos_of,
                                  const std::string& flight_recording = {});
// The same as one line with its newline. Invalid UTF-8 in names is replaced.
std::string audit_line(const Eviction& eviction, WallTime decided_at, QosOf qos_of,
                       const std::string& flight_recording = {});

}  // namespace headroom::report
