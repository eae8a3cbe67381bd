// SPDX-License-Identifier: Apache-2.0
// Command: what is to be run. Each command adds itself to the command line, and chooses itself when
// it is the one asked for.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace headroom::ctl {

// Returns the exit status; says what failed on stderr.
using CliCommand = std::function<int()>;

// Where a command is listed by --help.
inline constexpr const char* kInspectGroup = "Looking";
inline constexpr const char* kQueryGroup = "Asking";
inline constexpr const char* kChangeGroup = "Changing";

}  // namespace headroom::ctl
