// SPDX-License-Identifier: Apache-2.0
// systemd's own escaping of arbitrary text into unit names (systemd-escape(1)): the kubelet's
// slices do without it, transient units named by users do not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// "/" becomes "-"; what is no letter, digit, ":", "_" or "." becomes \xNN, as does a leading dot.
std::string escape_unit(std::string_view text);

// Nothing: not what escaping gives.
std::optional<std::string> unescape_unit(std::string_view escaped);

}  // namespace headroom
