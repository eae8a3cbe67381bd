// SPDX-License-Identifier: Apache-2.0
// Units: distinct types for time, bytes, CPU and cgroup ids, so that they cannot be mixed up.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>

namespace headroom {

// Time on CLOCK_BOOTTIME: monotonic, counts suspend, survives a restart of the daemon but not of
// the machine. It has no now(): only the outer code (daemon/, tests) reads a clock.
struct BootTime {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootTime>;
  static constexpr bool is_steady = true;
};
using Instant = BootTime::time_point;
using Duration = std::chrono::nanoseconds;

constexpr double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// A number of bytes. Signed, so that a difference can be negative and does not wrap
// (kubernetes/kubernetes 52386, 114332: an unsigned subtraction evicted whole nodes).
struct Bytes {
  std::int64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  constexpr Bytes& operator+=(Bytes other) { return *this = *this + other; }
};

// CPU time per time, in thousandths of a CPU: the unit of requests.cpu.
struct MilliCpu {
  std::int64_t count = 0;
  friend constexpr auto operator<=>(MilliCpu, MilliCpu) = default;
};

// The kernel's cgroup id (64-bit kernfs id; the inode number of the cgroup's directory). Never
// reused while the system is up, unlike a path.
struct CgroupId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(CgroupId, CgroupId) = default;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) {
  return {static_cast<std::int64_t>(n)};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<std::int64_t>(n) << 30};
}
}  // namespace literals

}  // namespace headroom

template <>
struct std::hash<headroom::CgroupId> {
  std::size_t operator()(headroom::CgroupId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
