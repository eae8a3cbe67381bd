// SPDX-License-Identifier: Apache-2.0
// Every configuration key, with its type and default, for showing and checking a configuration
// without the daemon.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::config {

// Setting: one key of the configuration, its value, and where that came from.

struct ConfigSetting {
  std::string path;    // "headroom.disk.walkRate"
  std::string entry;   // of a map: "memory.available"; else ""
  std::string value;   // as JSON; "null": none, or found by the daemon
  std::string origin;  // "default", "found", "/etc/headroom/headroom.yaml:3", "--mode"
  // A newer value that takes effect only at the next start; "" if there is none.
  std::string next{};
  std::string next_origin{};
  friend bool operator==(const ConfigSetting&, const ConfigSetting&) = default;
};
using ConfigSettings = std::vector<ConfigSetting>;

// The settings as a KubeletConfiguration, each line with its origin.
std::string as_yaml(const ConfigSettings& settings);

// The settings in force after `loaded` is adopted by a daemon that runs with `running`: those that
// need a restart keep their value.
ConfigSettings keep_restart_settings(ConfigSettings loaded, const ConfigSettings& running);

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
