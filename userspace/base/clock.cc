// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string_view>

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

namespace headroom {
namespace {

using std::chrono::floor;
using std::chrono::microseconds;
using std::chrono::seconds;

std::tm utc_of(WallTime time) {
  return fmt::gmtime(static_cast<std::time_t>(floor<seconds>(time.time_since_epoch()).count()));
}

// The fraction given by the digits after the point; absent if there are none, or other characters.
std::optional<microseconds> fraction_of(std::string_view digits) {
  if (digits.empty() || digits.size() > 9) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(digits.size(), 6); ++i) {
    const char digit = i < digits.size() ? digits[i] : '0';
    if (digit < '0' || digit > '9') return std::nullopt;
    if (i < 6) value = value * 10 + (digit - '0');
  }
  return microseconds(value);
}

}  // namespace

std::string rfc3339(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc_of(time));
}

std::string rfc3339_micro(WallTime time) {
  const auto micros = floor<microseconds>(time.time_since_epoch() % seconds(1) + seconds(1));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", utc_of(time), micros.count() % 1'000'000);
}

std::optional<WallTime> parse_rfc3339(const std::string& text) {
  std::tm utc{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (!end) return std::nullopt;
  std::string_view rest = end;
  if (!rest.ends_with('Z')) return std::nullopt;
  rest.remove_suffix(1);
  microseconds fraction{0};
  if (!rest.empty()) {
    const auto digits = rest.front() == '.' ? fraction_of(rest.substr(1)) : std::nullopt;
    if (!digits) return std::nullopt;
    fraction = *digits;
  }
  const auto since_1970 = seconds(::timegm(&utc));
  if (since_1970 < seconds(0) || since_1970 >= std::chrono::floor<seconds>(Duration::max()))
    return std::nullopt;
  return WallTime(since_1970) + fraction;
}

}  // namespace headroom

namespace headroom::observe {
namespace {

Duration read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);  // cannot fail for a clock the kernel has (both since 2.6.39)
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Instant now() {
  return Instant(read(CLOCK_BOOTTIME));
}

Duration thread_cpu_time() {
  return read(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace headroom::observe
