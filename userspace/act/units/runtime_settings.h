// SPDX-License-Identifier: Apache-2.0
// Settings that units have until the next boot, in the directory where systemd keeps what
// SetUnitProperties sets with `runtime` (systemd.unit(5), system.control).
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

namespace headroom::act {

inline constexpr const char* kRuntimeSettings = "/run/systemd/system.control";

// The unit's value of the property there, as systemd wrote it. Absent as well if it cannot be read.
std::optional<std::string> runtime_setting(const std::filesystem::path& settings,
                                           const std::string& unit, const std::string& property);

// Removes the files of these properties, and the unit's directory if no other setting is in it. A
// loaded unit keeps its values. Without effect if there are none.
void remove_runtime_settings(const std::filesystem::path& settings, const std::string& unit,
                             std::initializer_list<const char*> properties);

}  // namespace headroom::act
