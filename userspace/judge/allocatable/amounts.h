// SPDX-License-Identifier: Apache-2.0
// Amounts: an amount of each resource of a node: its capacity, a reservation, or the rest.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// SettingError: an error in one field of the configuration. All errors are found at once. Names are
// quoted as in the kubelet's messages.

// A word quoted as in the kubelet's messages.

inline std::string double_quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

struct SettingError {
  std::string field;  // "kubeReserved"
  std::string key;    // the entry in question: of a map its key, of a list its text; else ""
  std::string what;   // in the kubelet's words where it has them, its prefix included
  friend bool operator==(const SettingError&, const SettingError&) = default;
};

// Absent: unknown (of a capacity), or not requested (of a reservation).
struct Amounts {
  std::optional<MilliCpu> cpu{};
  std::optional<Bytes> memory{};
  std::optional<Bytes> ephemeral_storage{};
  std::optional<Tasks> pids{};
  std::map<Bytes, Bytes> huge_pages{};  // page size → bytes; of a capacity, every size there is

  friend bool operator==(const Amounts&, const Amounts&) = default;
};

// The sum of two reservations; saturates.
Amounts sum(const Amounts& a, const Amounts& b);

// Capacity minus reservation, at least zero. Unknown amounts stay unknown.
Amounts remainder(const Amounts& capacity, const Amounts& reserved);

}  // namespace headroom
