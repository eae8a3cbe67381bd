// SPDX-License-Identifier: Apache-2.0
// Flight recordings as JSON, and their files beside the audit log.
#pragma once

#include "report/eviction/audit_line.h"
#include "report/eviction/flight_recorder.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::report {

// Times are milliseconds from the minute's end: not above 0.
std::string flight_recording_json(const FlightRecording& flight_recording, WallTime captured_at);

// The files' directory, in the audit log's.
inline constexpr const char* kFlightRecordingsDirectory = "minutes";
// Number of files that are kept, the newest.
inline constexpr std::size_t kMaxFlightRecordings = 64;

// Writes the flight recording of one eviction and removes the oldest file; returns the file's name
// for the audit record, relative to the log's directory. Named by time, then the pod's uid.
Result<std::string> write_flight_recording(const std::filesystem::path& audit_log,
                                           const FlightRecording& flight_recording, const Pod& pod,
                                           WallTime captured_at);

}  // namespace headroom::report
