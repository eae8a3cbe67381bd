// SPDX-License-Identifier: Apache-2.0
#include "observe/cgroup/cgroup_source.h"

namespace headroom::observe {

std::string group_list(std::uint32_t groups) {
  std::string list;
  for (std::size_t i = 0; i < HR_GROUPS; ++i) {
    if (!(groups & (1u << i))) continue;
    if (!list.empty()) list += ", ";
    list += kGroupNames[i];
  }
  return list.empty() ? "none" : list;
}

}  // namespace headroom::observe
