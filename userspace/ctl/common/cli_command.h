// SPDX-License-Identifier: Apache-2.0
// CliCommand: the function that headroomctl runs. Each command adds itself to the command line, and
// sets this function if it is the command that was given.
#pragma once

#include <functional>

namespace headroom::ctl {

class ArgumentParser;

// Returns the exit status; prints errors to stderr.
using CliCommand = std::function<int()>;

// The groups of commands in --help.
inline constexpr const char* kInspectGroup = "Inspect";
inline constexpr const char* kQueryGroup = "Query";
inline constexpr const char* kChangeGroup = "Change";

}  // namespace headroom::ctl
