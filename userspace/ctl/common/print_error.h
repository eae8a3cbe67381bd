// SPDX-License-Identifier: Apache-2.0
// print_error(): prints an error to stderr and returns the exit status for it.
#pragma once

#include "config/yaml/yaml.h"
#include "ctl/common/dbus_client.h"

#include <headroom/result.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace headroom::ctl {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;  // for commands in which 1 means "no"

inline int print_error(const Error& error) {
  std::fprintf(stderr, "headroomctl: %s\n", error.what.c_str());
  return kFailed;
}

// For a wrong command line.
inline int print_usage_error(const Error& error) {
  print_error(error);
  return kUsage;
}

// Every line has the prefix "headroomctl: ".
inline int print_error(const CallError& call_error) {
  std::string_view rest = call_error.what;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() == rest.size() ? rest.size() : line.size() + 1);
    std::fprintf(stderr, "headroomctl: %s\n", line.c_str());
  }
  return call_error.kind == CallError::Kind::kUnreachable ? kUnreachable : kFailed;
}

// In the format of compilers (file:line: text), so that editors find the place.
inline int print_error(const config::Diagnostics& diagnostics) {
  for (const config::Diagnostic& diagnostic : diagnostics)
    std::fprintf(stderr, "%s\n", to_string(diagnostic).c_str());
  return kUsage;
}

}  // namespace headroom::ctl
