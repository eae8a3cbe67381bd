// SPDX-License-Identifier: Apache-2.0
#include "judge/resources/go_duration.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

namespace headroom {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();

struct Unit {
  std::string_view name;
  std::uint64_t nanoseconds;
};
constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"\u00b5s", 1'000},  // micro sign
                                      {"\u03bcs", 1'000},  // Greek mu
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000}}};

std::optional<std::uint64_t> nanoseconds_of(std::string_view unit) {
  for (const auto& [name, nanoseconds] : kUnits)
    if (name == unit) return nanoseconds;
  return std::nullopt;
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Further digits of a fraction make no difference in 2^63 nanoseconds.
constexpr std::uint64_t kFinest = 1'000'000'000'000'000'000;

// One "1.5h" of a duration, as read off its front.
struct Term {
  std::optional<std::uint64_t> whole = 0;  // absent: too large
  std::uint64_t fraction = 0;              // its digits, over `scale`
  std::uint64_t scale = 1;
  bool has_digits = false;
  std::string_view unit;
};

Term take_term(std::string_view& rest) {
  Term term;
  for (; !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1)) {
    term.has_digits = true;
    const auto digit = static_cast<std::uint64_t>(rest.front() - '0');
    if (term.whole && *term.whole > (kMax - digit) / 10) term.whole.reset();
    if (term.whole) *term.whole = *term.whole * 10 + digit;
  }
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    for (; !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1)) {
      term.has_digits = true;
      if (term.scale == kFinest) continue;
      term.fraction = term.fraction * 10 + static_cast<std::uint64_t>(rest.front() - '0');
      term.scale *= 10;
    }
  }
  const auto end = rest.find_first_of(".0123456789");
  term.unit = rest.substr(0, end);
  rest.remove_prefix(term.unit.size());
  return term;
}

// Truncated to whole nanoseconds. Exact where Go multiplies in floating point.
std::uint64_t fraction_of(std::uint64_t unit, const Term& term) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{term.fraction} * unit / term.scale);
}

std::string_view trim_zeros(std::string_view digits) {
  const auto last = digits.find_last_not_of('0');
  return digits.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// value / scale as a decimal fraction without trailing zeros; scale is a power of ten.
std::string decimal(std::uint64_t value, std::uint64_t scale) {
  const std::string shifted = std::to_string(scale + value % scale);  // "1" and the padded digits
  const auto digits = trim_zeros(std::string_view(shifted).substr(1));
  std::string text = std::to_string(value / scale);
  if (!digits.empty()) text.append(".").append(digits);
  return text;
}

std::string format_magnitude(std::uint64_t ns) {
  if (ns == 0) return "0s";
  if (ns < 1'000) return std::to_string(ns) + "ns";
  if (ns < 1'000'000) return decimal(ns, 1'000) + "\u00b5s";
  if (ns < 1'000'000'000) return decimal(ns, 1'000'000) + "ms";

  constexpr std::uint64_t kMinute = 60'000'000'000;
  const std::uint64_t minutes = ns / kMinute;
  std::string text;
  if (minutes >= 60) text += std::to_string(minutes / 60) + "h";
  if (minutes > 0) text += std::to_string(minutes % 60) + "m";
  return text + decimal(ns % kMinute, 1'000'000'000) + "s";
}

}  // namespace

Result<Duration> parse_go_duration(std::string_view text) {
  const auto invalid = [&] { return failure("time: invalid duration " + quoted(text)); };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return Duration::zero();
  if (rest.empty()) return invalid();

  std::uint64_t total = 0;
  while (!rest.empty()) {
    const Term term = take_term(rest);
    if (!term.has_digits || !term.whole) return invalid();
    if (term.unit.empty()) return failure("time: missing unit in duration " + quoted(text));
    const auto unit = nanoseconds_of(term.unit);
    if (!unit)
      return failure("time: unknown unit " + quoted(term.unit) + " in duration " + quoted(text));
    if (*term.whole > kMax / *unit) return invalid();
    // Each is below 2^63, so that the sum of two cannot wrap.
    total += *term.whole * *unit;
    if (total > kMax) return invalid();
    total += fraction_of(*unit, term);
    if (total > kMax) return invalid();
  }
  const Duration span{static_cast<std::int64_t>(total)};
  return negative ? -span : span;
}

std::string format_go_duration(Duration duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  if (duration >= Duration::zero()) return format_magnitude(count);
  return "-" + format_magnitude(0 - count);  // unsigned: the smallest span has no positive twin
}

}  // namespace headroom
