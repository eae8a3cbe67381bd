// SPDX-License-Identifier: Apache-2.0
// A frozen minute as JSON, and the files of such minutes beside the audit log.
#pragma once

#include "report/audit_line.h"
#include "report/minute.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::report {

// Times are milliseconds from the minute's end: not above 0.
std::string minute_text(const Minute& minute, WallTime frozen_at);

// The files' directory, in the audit log's.
inline constexpr const char* kMinutes = "minutes";
// The newest so many are kept.
inline constexpr std::size_t kMinutesKept = 64;

// Writes the file of one eviction's minute and removes the oldest; the file's name as the audit
// record tells it, from the log's directory. By time, then the pod's uid.
Result<std::string> keep_minute(const std::filesystem::path& audit_log, const Minute& minute,
                                const Pod& pod, WallTime frozen_at);

}  // namespace headroom::report
