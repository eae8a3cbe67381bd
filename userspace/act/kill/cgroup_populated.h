// SPDX-License-Identifier: Apache-2.0
// Whether a cgroup has a live process in or below it.
#pragma once

#include <unistd.h>

#include <string_view>

namespace headroom::act {

// `events` is an open cgroup.events. Unknown counts as populated: a kill of an empty cgroup does no
// harm, a kill left out does.
inline bool cgroup_populated(int events) {
  char text[128];
  const ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n <= 0) return true;
  return std::string_view(text, static_cast<std::size_t>(n)).find("populated 0") ==
         std::string_view::npos;
}

}  // namespace headroom::act
