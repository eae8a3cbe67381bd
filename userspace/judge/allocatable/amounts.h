// SPDX-License-Identifier: Apache-2.0
// Amounts: so much of each resource of a node; what it has, what is reserved, what is left.
#pragma once

#include "judge/allocatable/cgroup/cgroup_values.h"

#include <headroom/units.h>

#include <map>
#include <optional>

namespace headroom {

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
