// SPDX-License-Identifier: Apache-2.0
// Published waits, and the state of the BPF programs that observe them.
#pragma once

#include <headroom/units.h>
#include <headroom/waits.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom::report {

// A BPF program and its losses. The names are string literals, because views are copied by value.
struct ProgramView {
  std::string_view name;
  std::string_view hook;  // the attachment; "": not loaded
  std::uint64_t lost_in_map = 0;
  std::uint64_t lost_in_ring = 0;
};
inline constexpr std::size_t kPrograms = 4;
using Programs = std::array<ProgramView, kPrograms>;

// The waits of all cgroups together; absent: not watched.
struct NodeWaits {
  std::optional<hr_stalls> stalls;
  std::optional<hr_waits> throttles;
};

// A ByCgroup that owns its values; its buffers are reused.
template <class Value>
struct WaitTable {
  std::vector<std::uint64_t> ids;
  std::vector<Value> values;
  bool known = false;
  std::uint64_t lost = 0;  // ByCgroup::lost

  // A cgroup that is not listed never waited; else that is unknown.
  bool lists_all() const { return known && lost == 0; }

  void assign(const std::optional<ByCgroup<Value>>& read) { assign(read, std::identity{}); }
  // `value_of`: the Value of what was read, if that is more than it.
  template <class Read, class ValueOf>
  void assign(const std::optional<ByCgroup<Read>>& read, ValueOf value_of) {
    ids.clear();
    values.clear();
    known = read.has_value();
    lost = read ? read->lost : 0;
    if (!known) return;
    ids.insert(ids.end(), read->ids.begin(), read->ids.end());
    for (const Read& each : read->values)
      values.push_back(std::invoke(value_of, each));
  }
};

NodeWaits node_waits(const Waits& waits);

inline double waited_seconds(const hr_waits& waits) {
  return static_cast<double>(waits.ns) / 1e9;
}

// Upper bound of the bucket; the last one has no bound.
constexpr double bucket_bound_seconds(std::size_t bucket) {
  return static_cast<double>(std::uint64_t{1} << bucket) / 1e6;
}

// The quantile (0.99) of the waits, rounded up to a power of two; absent: no waits.
std::optional<Duration> quantile(const hr_waits& waits, double share);

void add(const hr_waits& waits, hr_waits& to);
void add(const hr_stalls& stalls, hr_stalls& to);

}  // namespace headroom::report
