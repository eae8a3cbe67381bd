// SPDX-License-Identifier: Apache-2.0
// How headroomctl fails: one line on stderr and an exit status.
#pragma once

#include "config/yaml/complaint.h"
#include "ctl/common/dbus_client.h"

#include <headroom/result.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace headroom::ctl {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;  // where 1 is the answer "no"

inline int print_error(const Error& error) {
  std::fprintf(stderr, "headroomctl: %s\n", error.what.c_str());
  return kFailed;
}

// Asked for what cannot be: the answer to a wrong command line.
inline int print_usage_error(const Error& error) {
  print_error(error);
  return kUsage;
}

// Each line under our name.
inline int print_error(const CallError& call_error) {
  std::string_view rest = call_error.what;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() == rest.size() ? rest.size() : line.size() + 1);
    std::fprintf(stderr, "headroomctl: %s\n", line.c_str());
  }
  return call_error.kind == CallError::Kind::kUnreachable ? kUnreachable : kFailed;
}

// As compilers do, so that editors find the place.
inline int print_error(const config::Diagnostics& diagnostics) {
  for (const config::Diagnostic& diagnostic : diagnostics)
    std::fprintf(stderr, "%s\n", to_string(diagnostic).c_str());
  return kUsage;
}

}  // namespace headroom::ctl
