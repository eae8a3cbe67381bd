// SPDX-License-Identifier: Apache-2.0
// SettingError: what speaks against one field of the configuration. All of them are found at once.
#pragma once

#include <string>

namespace headroom {

struct SettingError {
  std::string field;  // "kubeReserved"
  std::string key;    // the entry in question: of a map its key, of a list its text; else ""
  std::string what;   // in the kubelet's words where it has them, its prefix included
  friend bool operator==(const SettingError&, const SettingError&) = default;
};

}  // namespace headroom
