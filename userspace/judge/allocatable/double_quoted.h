// SPDX-License-Identifier: Apache-2.0
// A word in a complaint, as the kubelet's complaints have it.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

inline std::string double_quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

}  // namespace headroom
