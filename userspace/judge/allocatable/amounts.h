// SPDX-License-Identifier: Apache-2.0
// Amounts: so much of each resource of a node; what it has, what is reserved, what is left.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// SettingError: what speaks against one field of the configuration. All of them are found at once.
// Names in it are quoted as the kubelet quotes them.

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

// Absent: not known of a capacity, not asked for of a reservation.
struct Amounts {
  std::optional<MilliCpu> cpu{};
  std::optional<Bytes> memory{};
  std::optional<Bytes> ephemeral_storage{};
  std::optional<Tasks> pids{};
  std::map<Bytes, Bytes> huge_pages{};  // page size → bytes; of a capacity, every size there is

  friend bool operator==(const Amounts&, const Amounts&) = default;
};

// Of two reservations; saturates.
Amounts sum(const Amounts& a, const Amounts& b);

// What a reservation leaves of a capacity, never less than nothing. What is not known stays so.
Amounts remainder(const Amounts& capacity, const Amounts& reserved);

}  // namespace headroom
