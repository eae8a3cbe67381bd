// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"

#include <array>
#include <cstddef>
#include <cstdlib>

#include <spdlog/fmt/fmt.h>

namespace headroom {
namespace {

// Characters that reverse or break the line they are in: U+061C, U+200E, U+200F, U+2028 to U+202E,
// U+2066 to U+2069.
bool is_direction_or_line_mark(std::string_view character) {
  if (character == "\xd8\x9c") return true;
  if (character.size() != 3 || character[0] != '\xe2') return false;
  const auto second = static_cast<unsigned char>(character[1]);
  const auto third = static_cast<unsigned char>(character[2]);
  if (second == 0x80) return third == 0x8e || third == 0x8f || (third >= 0xa8 && third <= 0xae);
  return second == 0x81 && third >= 0xa6 && third <= 0xa9;
}

// The length of the valid UTF-8 sequence at the start; 0: there is none, or a control character or
// mark.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  if (first == 0xc2 && second < 0xa0) return 0;   // U+0080 to U+009F: control characters
  if (first == 0xe0 && second < 0xa0) return 0;   // longer than necessary
  if (first == 0xed && second >= 0xa0) return 0;  // surrogates
  if (first == 0xf0 && second < 0x90) return 0;   // longer than necessary
  if (first == 0xf4 && second >= 0x90) return 0;  // above U+10FFFF
  return is_direction_or_line_mark(text.substr(0, length)) ? 0 : length;
}

}  // namespace

void append_printable(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0)
      to += '?';
    else
      to += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  append_printable(clean, text);
  return clean;
}

}  // namespace headroom

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
    case Signal::kKernelMemAvailable:
      return true;
    case Signal::kNodeFsInodesFree:
    case Signal::kImageFsInodesFree:
    case Signal::kContainerFsInodesFree:
    case Signal::kPidAvailable:
    case Signal::kMemoryPressure:
    case Signal::kCpuPressure:
      return false;
  }
  return true;
}

std::string human_cpus(std::int64_t thousandths) {
  return fmt::format("{:.2f} CPUs", static_cast<double>(thousandths) / 1e3);
}

std::string human_amount(Signal signal, std::int64_t amount) {
  // The amount is a share of the time, in millionths.
  if (is_share_of_time(signal)) return fmt::format("{:.1f}%", static_cast<double>(amount) / 1e4);
  return is_byte_signal(signal) ? human_bytes(amount) : std::to_string(amount);
}

}  // namespace headroom::report
