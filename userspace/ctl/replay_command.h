// SPDX-License-Identifier: Apache-2.0
// headroomctl replay: runs the judge again over a recording.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"
#include "recording/replayer.h"

#include <cstdint>
#include <string>

namespace headroom::ctl {

// Exit statuses, as of diff(1).
inline constexpr int kSame = 0;
inline constexpr int kDifferent = 1;

// `wall_offset`: nanoseconds from CLOCK_BOOTTIME to wall time.
std::string render_replay(const recording::Replayed& replayed, std::int64_t wall_offset,
                          const Screen& screen);
std::string replay_json(const recording::Replayed& replayed, std::int64_t wall_offset);

void add_replay(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
