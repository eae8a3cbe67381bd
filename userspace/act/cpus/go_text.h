// SPDX-License-Identifier: Apache-2.0
// Go values as the text that the kubelet's checksums are of: go-spew's rendering, keys sorted.
#pragma once

#include <string>
#include <type_traits>

namespace headroom::act {

template <class Map, class Render>
std::string rendered_map(const Map& map, Render render) {
  std::string text = "map[";
  for (const auto& [key, value] : map) {
    if (text.back() != '[') text += ' ';
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(key)>>)
      text += std::to_string(key);
    else
      text += key;
    text += ':';
    text += render(value);
  }
  return text + ']';
}

}  // namespace headroom::act
