// SPDX-License-Identifier: Apache-2.0
// CgroupValues: settings of a cgroup. The same type has desired and actual values; diff() gives the
// values to write. Also conversions of CPU amounts.
#pragma once

#include <headroom/pod.h>
#include <headroom/units.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Huge pages as pods and nodes name them: "hugepages-2Mi".

// The page size in a resource's name. Absent: it is not a huge page, or has an impossible size.
std::optional<Bytes> huge_page_size(std::string_view resource);

std::string huge_page_resource(Bytes page_size);

// Page size → bytes, of the huge pages in a list.
std::map<Bytes, Bytes> huge_pages_in(const ResourceList& list);

using Microseconds = std::chrono::microseconds;

// cpu.weight: 1 … 10000; 100 if it was never set.
struct CpuWeight {
  std::uint32_t value = 100;
  friend constexpr auto operator<=>(CpuWeight, CpuWeight) = default;
};

// Processes and threads: what pids.max counts.
struct Tasks {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(Tasks, Tasks) = default;
};

// A limit: an amount, or the kernel's "max".
template <class T>
class Limit {
 public:
  constexpr Limit(T most) : most_(most) {}  // implicit: an amount is a limit
  static constexpr Limit max() { return Limit(); }

  constexpr bool is_max() const { return !most_; }
  // Absent: max.
  constexpr const std::optional<T>& most() const { return most_; }
  friend constexpr bool operator==(const Limit&, const Limit&) = default;

 private:
  constexpr Limit() = default;
  std::optional<T> most_;
};

struct CpuMax {
  Limit<Microseconds> quota = Limit<Microseconds>::max();
  Microseconds period{100'000};
  friend constexpr bool operator==(const CpuMax&, const CpuMax&) = default;
};

// An absent field: the setting is not managed, or was not read.
struct CgroupValues {
  std::optional<CpuWeight> cpu_weight{};
  std::optional<CpuMax> cpu_max{};
  std::optional<Limit<Bytes>> memory_min{};
  std::optional<Limit<Bytes>> memory_low{};
  std::optional<Limit<Bytes>> memory_high{};
  std::optional<Limit<Bytes>> memory_max{};
  std::optional<Limit<Bytes>> memory_swap_max{};
  std::optional<bool> memory_oom_group{};
  std::optional<Limit<Tasks>> pids_max{};
  std::map<Bytes, Limit<Bytes>> hugetlb_max{};  // page size → limit

  bool empty() const { return *this == CgroupValues{}; }
  friend bool operator==(const CgroupValues&, const CgroupValues&) = default;
};

struct Difference {
  CgroupValues write;   // desired, and known to be different
  CgroupValues unread;  // desired, but the actual value is unknown
};

// Values are equal if the kernel would show them as equal: memory in whole pages, hugetlb in whole
// huge pages, rounded down, and a quota of "max" with any period.
Difference diff(const CgroupValues& desired, const CgroupValues& actual, Bytes page = Bytes{4096});

// A setting in cgroupfs syntax: {"cpu.max", "50000 100000"}.
struct CgroupSetting {
  std::string file;
  std::string value;
  friend bool operator==(const CgroupSetting&, const CgroupSetting&) = default;
};
// Every field that is present. Protections come before limits, and memory.high before memory.max,
// so that a cgroup is throttled before its hard limit applies.
std::vector<CgroupSetting> cgroup_settings(const CgroupValues& values);

// Conversions between the units of CPU: milliCPU for a pod, shares for cgroup v1 and OCI, weight
// and quota for cgroup v2 (kubelet: cm/helpers_linux.go).

// The unit of cgroup v1, which OCI runtimes still take: 1024 per CPU, 2 … 262144.
struct CpuShares {
  std::uint64_t count = 0;
  friend constexpr auto operator<=>(CpuShares, CpuShares) = default;
};
inline constexpr CpuShares kMinShares{2};
inline constexpr CpuShares kMaxShares{262'144};

// One formula is applied at every level: two of them distort siblings that were sized by different
// ones (kubernetes/kubernetes 131216).
enum class WeightFormula : std::uint8_t {
  kLinear,     // the kubelet's: 1 CPU is 39, beside systemd's default of 100
  kQuadratic,  // runc from 1.3.2, crun from 1.23: 1 CPU is 100
};

CpuShares shares_of(MilliCpu cpu);

// CPU time per period, at least 1 ms. Absent: no CPU limit, so no quota.
std::optional<Microseconds> directory_quota(MilliCpu cpu,
                                            Microseconds period = Microseconds(100'000));

CpuWeight weight_of(CpuShares shares, WeightFormula formula);

}  // namespace headroom
