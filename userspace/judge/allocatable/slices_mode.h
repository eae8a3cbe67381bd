// SPDX-License-Identifier: Apache-2.0
// SlicesMode: what is done about the cgroups between the root and the pods.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

enum class SlicesMode : std::uint8_t {
  kOff,
  kObserve,  // compared with the desired values, and reported
  kEnforce,  // and put right
};
constexpr std::string_view name(SlicesMode mode) {
  switch (mode) {
    case SlicesMode::kOff:
      return "off";
    case SlicesMode::kObserve:
      return "observe";
    case SlicesMode::kEnforce:
      return "enforce";
  }
  return "";
}

}  // namespace headroom
