// SPDX-License-Identifier: Apache-2.0
// How headroomctl fails: one line on stderr and an exit status.
#pragma once

#include "config/complaint.h"
#include "ctl/client.h"

#include <headroom/result.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace headroom::ctl {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;  // where 1 is the answer "no"

inline int complain(const Error& error) {
  std::fprintf(stderr, "headroomctl: %s\n", error.what.c_str());
  return kFailed;
}

// Asked for what cannot be: the answer to a wrong command line.
inline int wrong_use(const Error& error) {
  complain(error);
  return kUsage;
}

// Each line under our name.
inline int complain(const NoAnswer& none) {
  std::string_view rest = none.what;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() == rest.size() ? rest.size() : line.size() + 1);
    std::fprintf(stderr, "headroomctl: %s\n", line.c_str());
  }
  return none.kind == NoAnswer::Kind::kUnreachable ? kUnreachable : kFailed;
}

// As compilers do, so that editors find the place.
inline int complain(const config::Complaints& complaints) {
  for (const config::Complaint& complaint : complaints)
    std::fprintf(stderr, "%s\n", to_string(complaint).c_str());
  return kUsage;
}

}  // namespace headroom::ctl
