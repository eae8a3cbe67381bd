// SPDX-License-Identifier: Apache-2.0
// SettingError: what speaks against one field of the configuration. All of them are found at once.
// Names in it are quoted as the kubelet quotes them.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

// A word in a complaint, as the kubelet's complaints have it.

inline std::string double_quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

struct SettingError {
  std::string field;  // "kubeReserved"
  std::string key;    // the entry in question: of a map its key, of a list its text; else ""
  std::string what;   // in the kubelet's words where it has them, its prefix included
  friend bool operator==(const SettingError&, const SettingError&) = default;
};

}  // namespace headroom
