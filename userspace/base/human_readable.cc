// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"

#include <array>
#include <cstdlib>

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

std::string two_digits(double value, std::string_view unit) {
  std::string text = value < 9.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text.append(unit);
}

std::string pair(std::int64_t large, std::string_view large_unit, std::int64_t small,
                 std::string_view small_unit) {
  if (small == 0) return fmt::format("{}{}", large, large_unit);
  return fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
}

}  // namespace

std::string human_bytes(std::int64_t count) {
  static constexpr std::array<std::string_view, 7> kUnits{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  double magnitude = std::abs(static_cast<double>(count));
  std::size_t unit = 0;
  for (; magnitude >= 1024 && unit + 1 < kUnits.size(); ++unit)
    magnitude /= 1024;
  return (count < 0 ? "-" : "") + two_digits(magnitude, kUnits[unit]);
}

std::string human(Duration duration) {
  if (duration < Duration::zero()) return "-" + human(-duration);
  const auto ns = duration.count();
  if (ns == 0) return "0s";
  if (ns < 1'000'000) return two_digits(static_cast<double>(ns) / 1e3, "us");
  if (ns < 1'000'000'000) return two_digits(static_cast<double>(ns) / 1e6, "ms");
  const auto seconds = ns / 1'000'000'000;
  if (seconds < 60) return two_digits(static_cast<double>(ns) / 1e9, "s");
  if (seconds < 3600) return pair(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86400) return pair(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return pair(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

bool is_byte_signal(Signal signal) {
  switch (signal) {
    case Signal::kMemoryAvailable:
    case Signal::kAllocatableMemoryAvailable:
    case Signal::kNodeFsAvailable:
    case Signal::kImageFsAvailable:
    case Signal::kContainerFsAvailable:
    case Signal::kSwapAvailable:
      return true;
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
    case Signal::kPidAvailable:
    case Signal::kMemoryPressure:
      return false;
  }
  return true;
}

std::string human_amount(Signal signal, std::int64_t amount) {
  // Millionths of the time.
  if (signal == Signal::kMemoryPressure)
    return fmt::format("{:.1f}%", static_cast<double>(amount) / 1e4);
  return is_byte_signal(signal) ? human_bytes(amount) : std::to_string(amount);
}

}  // namespace headroom::report
