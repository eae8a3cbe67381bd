// SPDX-License-Identifier: Apache-2.0
// The kinds of value a flag takes, told in place of what the file says.
#pragma once

#include "config/command_line.h"
#include "config/told.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::config {

// "memory.available<100Mi,nodefs.available<10%": given at all, it replaces the file's map, and
// given again it adds to itself (the last of a key stays), as the kubelet's flags do. `form` is
// what a pair looks like: "signal<value".
void tell_map(const CommandLine::Uses& uses, const std::string& flag, std::string_view form,
              std::optional<Told>& told, Complaints& complaints);
void tell_list(const CommandLine::Uses& uses, const std::string& flag, std::optional<Told>& told);
void tell_word(const CommandLine::Uses& uses, const std::string& flag, std::optional<Told>& told);
// Absent: not given, or complained of.
std::optional<bool> switch_of(const CommandLine::Uses& uses, const std::string& flag,
                              Complaints& complaints);
std::optional<std::int64_t> count_of(const CommandLine::Uses& uses, const std::string& flag,
                                     Complaints& complaints);
void tell_switch(const CommandLine::Uses& uses, const std::string& flag, std::optional<Told>& told,
                 Complaints& complaints);

}  // namespace headroom::config
