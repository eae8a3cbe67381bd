// SPDX-License-Identifier: Apache-2.0
// The kinds of value that a flag takes. A flag overrides the file.
#pragma once

#include "config/flags/command_line.h"
#include "config/yaml/located_value.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::config {

// "memory.available<100Mi,nodefs.available<10%": given at all, it replaces the file's map, and
// given again it adds to itself (the last of a key stays), as the kubelet's flags do. `form` is
// what a pair looks like: "signal<value".
void apply_map_flag(const CommandLine::FlagValues& values, const std::string& flag,
                    std::string_view form, std::optional<LocatedValue>& value,
                    Diagnostics& diagnostics);
void apply_list_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value);
void apply_string_flag(const CommandLine::FlagValues& values, const std::string& flag,
                       std::optional<LocatedValue>& value);
// Absent: not given, or complained of.
std::optional<bool> parse_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                                    Diagnostics& diagnostics);
std::optional<std::int64_t> parse_count_flag(const CommandLine::FlagValues& values,
                                             const std::string& flag, Diagnostics& diagnostics);
void apply_bool_flag(const CommandLine::FlagValues& values, const std::string& flag,
                     std::optional<LocatedValue>& value, Diagnostics& diagnostics);

}  // namespace headroom::config
