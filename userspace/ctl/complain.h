// SPDX-License-Identifier: Apache-2.0
// How headroomctl fails: one line on stderr and an exit status.
#pragma once

#include <headroom/result.h>

#include <cstdio>

namespace headroom::ctl {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

inline int complain(const Error& error) {
  std::fprintf(stderr, "headroomctl: %s\n", error.what.c_str());
  return kFailed;
}

}  // namespace headroom::ctl
