// SPDX-License-Identifier: Apache-2.0
// load(): from a command line, and the file it names, to a Config or every complaint at once.
#pragma once

#include "config/command_line.h"
#include "config/complaint.h"
#include "config/config.h"

#include <ostream>

#include <tl/expected.hpp>

namespace headroom::config {

// Read where --config names no other. It may be absent then: every key has a default.
inline constexpr const char* kDefaultFile = "/etc/headroom/headroom.yaml";
// Where --config-dir names no directory, drop-ins are beside the file: headroom.yaml.d.
inline constexpr const char* kDropInEnding = ".d";

// What was understood, beside what was wrong.
struct Heard {
  Config config;
  Complaints complaints;
};
Heard read(const CommandLine& line);

// All or nothing.
tl::expected<Config, Complaints> load(const CommandLine& line);

// One complaint a line.
void print(const Complaints& complaints, std::ostream& err);

// What --check-config does. The exit status: 0, or 2 with the complaints on `err`.
int check_config(const CommandLine& line, std::ostream& out, std::ostream& err);

}  // namespace headroom::config
