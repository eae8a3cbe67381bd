// SPDX-License-Identifier: Apache-2.0
// Every configuration key, with its type and default, for showing and checking a configuration
// without the daemon.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headroom::config {

enum class ConfigKeyType : std::uint8_t {
  kString,
  kEnum,  // one of `words`
  kBoolean,
  kInteger,
  kNumber,
  kDuration,
  kQuantity,
  kStrings,         // a list
  kStringMap,       // its values are strings
  kBoolMap,         // its values are booleans
  kTaints,          // a list of key, value, effect
  kReservedMemory,  // a list of numaNode, limits
};

struct KeyDescription {
  std::string_view path;  // "evictionHard", "headroom.disk.walkRate"
  ConfigKeyType type;
  std::string_view value;  // the default, as JSON; "null": none, or found at start
  std::string_view what;
  std::string_view enum_values = "";  // "observe enforce"
  bool restart = false;               // a reload leaves it as it was
};

// In the order a file would have them.
std::span<const KeyDescription> all_keys();
const KeyDescription* find_config_key(std::string_view path);  // null: unknown key

}  // namespace headroom::config
