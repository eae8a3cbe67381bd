// SPDX-License-Identifier: Apache-2.0
// The grammar followed is upstream's scanner (quantity.go parseQuantityString), which is wider than
// the regular expression its message quotes: "+", "." and "Mi" are zero.
#include <headroom/quantity.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {
namespace {

__extension__ using Wide = __int128;
constexpr Wide kMax = static_cast<Wide>((static_cast<unsigned __int128>(1) << 127) - 1);
constexpr Wide kNano = 1'000'000'000;
constexpr std::int64_t kMaxValue = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view kInvalidFormat =
    "quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kInvalidSuffix = "unable to parse quantity's suffix";

struct Suffix {
  std::string_view text;
  int exponent;  // of ten, or of two
};
constexpr std::array<Suffix, 10> kDecimal{{{"n", -9},
                                           {"u", -6},
                                           {"m", -3},
                                           {"", 0},
                                           {"k", 3},
                                           {"M", 6},
                                           {"G", 9},
                                           {"T", 12},
                                           {"P", 15},
                                           {"E", 18}}};
constexpr std::array<Suffix, 7> kBinary{
    {{"", 0}, {"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

struct Unit {
  Quantity::Format format;
  std::int64_t exponent;
};

// --- reading ---------------------------------------------------------------------------------

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_suffix_letter(char c) {
  return std::string_view("eEinumkKMGTP").find(c) != std::string_view::npos;
}

std::string_view take_while(std::string_view& rest, bool (*wanted)(char)) {
  const auto end = std::find_if_not(rest.begin(), rest.end(), wanted);
  const auto taken = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(taken.size());
  return taken;
}

bool take_sign(std::string_view& rest) {
  if (rest.empty() || (rest.front() != '-' && rest.front() != '+')) return false;
  const bool negative = rest.front() == '-';
  rest.remove_prefix(1);
  return negative;
}

struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view suffix;
};

std::optional<Parts> split(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Parts parts;
  std::string_view rest = text;
  parts.negative = take_sign(rest);
  parts.whole = take_while(rest, is_digit);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    parts.fraction = take_while(rest, is_digit);
  }
  parts.suffix = rest;
  take_while(rest, is_suffix_letter);
  take_sign(rest);
  take_while(rest, is_digit);
  if (!rest.empty()) return std::nullopt;
  return parts;
}

// Beyond this every digit string we could hold has long saturated or become 1n.
constexpr std::int64_t kFar = 1'000'000'000'000;

// "e3", "E-6": ten to that power. "E" alone is exa and was found in the table before.
std::optional<std::int64_t> exponent_of(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix.front() != 'e' && suffix.front() != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix.front() == '+') suffix.remove_prefix(1);
  std::int64_t exponent = 0;
  const char* const end = suffix.data() + suffix.size();
  const auto [stopped, error] = std::from_chars(suffix.data(), end, exponent);
  if (error != std::errc{} || stopped != end) return std::nullopt;
  return std::clamp(exponent, -kFar, kFar);
}

std::optional<Unit> unit_of(std::string_view suffix) {
  for (const auto& [text, exponent] : kDecimal)
    if (text == suffix) return Unit{Quantity::Format::kDecimalSI, exponent};
  for (const auto& [text, exponent] : kBinary)
    if (text == suffix) return Unit{Quantity::Format::kBinarySI, exponent};
  if (const auto exponent = exponent_of(suffix))
    return Unit{Quantity::Format::kDecimalExponent, *exponent};
  return std::nullopt;
}

// --- exact arithmetic on magnitudes ----------------------------------------------------------

Wide add(Wide a, Wide b) {
  Wide sum = 0;
  if (!__builtin_add_overflow(a, b, &sum) && sum >= -kMax) return sum;
  return b < 0 ? -kMax : kMax;
}

Wide times(Wide a, Wide b) {  // neither is negative
  Wide product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMax : product;
}

// The first `point` digits, padded with zeros.
Wide whole_part(std::string_view digits, std::int64_t point) {
  Wide total = 0;
  for (std::int64_t i = 0; i < point; ++i) {
    const bool padding = i >= std::ssize(digits);
    if (padding && (total == 0 || total == kMax)) break;
    total = add(times(total, 10), padding ? 0 : digits[static_cast<std::size_t>(i)] - '0');
  }
  return total;
}

// scale × 0.ddd, the digits after the point, rounded up. Working from the last digit forward, the
// remainder dropped at each step cannot change the integer below: only whether one was dropped.
Wide fraction_part(std::string_view digits, std::int64_t point, Wide scale) {
  Wide total = 0;
  bool dropped = false;
  for (auto i = std::ssize(digits) - 1; i >= std::max<std::int64_t>(point, 0); --i) {
    total += (digits[static_cast<std::size_t>(i)] - '0') * scale;
    dropped = dropped || total % 10 != 0;
    total /= 10;
  }
  return dropped ? total + 1 : total;
}

// value × 1000^thousands
struct Magnitude {
  Wide value = 0;
  std::int64_t thousands = 0;
};

// The digits before `point`, which are more than fit, in the least power of 1000 that holds them
// exactly. Only zeros can be left out: if others do not fit, the value saturates, as do those whose
// exponent was cut off at kFar.
Magnitude large_magnitude(std::string_view digits, std::int64_t point) {
  const std::size_t last = digits.find_last_not_of('0');
  if (last == std::string_view::npos) return {};
  const std::int64_t zeros = point - static_cast<std::int64_t>(last) - 1;
  const std::size_t first = digits.find_first_not_of('0');
  const std::int64_t length = point - static_cast<std::int64_t>(first);
  if (length > kFar) return {kMax, 0};
  constexpr std::int64_t kLength = 38;  // digits that fit for certain
  for (std::int64_t thousands = std::max<std::int64_t>(0, (length - kLength) / 3);
       3 * thousands <= zeros; ++thousands)
    if (const Wide value = whole_part(digits, point - 3 * thousands); value != kMax)
      return {value, thousands};
  return {kMax, 0};
}

// In nano units. A power of ten moves the point, a power of two multiplies.
Magnitude magnitude(const Parts& parts, const Unit& unit) {
  const std::string digits = std::string(parts.whole).append(parts.fraction);
  const bool binary = unit.format == Quantity::Format::kBinarySI;
  const Wide scale = binary ? kNano << unit.exponent : 1;
  const auto point = std::ssize(parts.whole) + (binary ? 0 : unit.exponent + 9);
  const Wide value =
      add(times(whole_part(digits, point), scale), fraction_part(digits, point, scale));
  if (value == kMax && !binary) return large_magnitude(digits, point);
  return {value, 0};
}

Wide divide_away_from_zero(Wide value, Wide by) {
  const Wide quotient = value / by;
  if (value % by == 0) return quotient;
  return value < 0 ? quotient - 1 : quotient + 1;
}

std::int64_t saturate(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, -Wide{kMaxValue}, kMaxValue));
}

// --- writing ---------------------------------------------------------------------------------

std::string to_string(Wide value) {
  std::string backwards;
  for (Wide rest = value < 0 ? -value : value; rest != 0; rest /= 10)
    backwards.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  if (value < 0) backwards.push_back('-');
  return {backwards.rbegin(), backwards.rend()};
}

std::string in_binary(Wide units) {
  std::size_t suffix = 0;
  for (; suffix + 1 < kBinary.size() && units % 1024 == 0; ++suffix)
    units /= 1024;
  return to_string(units).append(kBinary[suffix].text);
}

std::string in_decimal(Wide nano, std::int64_t thousands, Quantity::Format format) {
  constexpr auto kSuffixes = std::ssize(kDecimal);
  // A sum may have the scale of "1e999" and the format of "1k": not with hundreds of zeros.
  constexpr std::int64_t kMostZeros = 30;
  const bool as_exponent =
      format == Quantity::Format::kDecimalExponent || thousands > kSuffixes + kMostZeros / 3;
  std::int64_t power = thousands;  // of 1000, from nano on
  while (nano % 1000 == 0 && (as_exponent || power + 1 < kSuffixes)) {
    nano /= 1000;
    ++power;
  }
  std::string text = to_string(nano);
  if (as_exponent) return power == 3 ? text : text + "e" + std::to_string(3 * power - 9);
  for (; power >= kSuffixes; --power)
    text += "000";
  return text.append(kDecimal[static_cast<std::size_t>(power)].text);
}

}  // namespace

Quantity Quantity::of(std::int64_t value, Format format) {
  Quantity quantity;
  quantity.nano_ = value * kNano;
  quantity.format_ = format;
  return quantity;
}

Quantity Quantity::of_milli(std::int64_t milli, Format format) {
  Quantity quantity;
  quantity.nano_ = milli * (kNano / 1000);
  quantity.format_ = format;
  return quantity;
}

Result<Quantity> Quantity::parse(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return failure(std::string(kInvalidFormat));
  const auto unit = unit_of(parts->suffix);
  if (!unit) return failure(std::string(kInvalidSuffix));

  Quantity quantity;
  const auto [nano, thousands] = magnitude(*parts, *unit);
  quantity.nano_ = nano;
  quantity.thousands_ = thousands;
  quantity.format_ = unit->format;
  if (quantity.format_ == Format::kBinarySI) {
    quantity.nano_ = std::min(quantity.nano_, kMaxValue * kNano);
    // Less than one byte cannot be expressed in powers of 1024.
    if (quantity.nano_ > 0 && quantity.nano_ < kNano) quantity.format_ = Format::kDecimalSI;
  }
  if (parts->negative) quantity.nano_ = -quantity.nano_;
  return quantity;
}

std::int64_t Quantity::value() const {
  if (thousands_ > 0) return nano_ < 0 ? -kMaxValue : kMaxValue;
  return saturate(divide_away_from_zero(nano_, kNano));
}

std::int64_t Quantity::milli_value() const {
  if (thousands_ > 0) return nano_ < 0 ? -kMaxValue : kMaxValue;
  return saturate(divide_away_from_zero(nano_, kNano / 1000));
}

std::string Quantity::canonical() const {
  if (nano_ == 0) return "0";
  const bool small = -1024 * kNano < nano_ && nano_ < 1024 * kNano;
  const bool whole = nano_ % kNano == 0;
  if (format_ != Format::kBinarySI) return in_decimal(nano_, thousands_, format_);
  return small || !whole ? in_decimal(nano_, 0, Format::kDecimalSI) : in_binary(nano_ / kNano);
}

Quantity& Quantity::operator+=(const Quantity& other) {
  if (is_zero()) return *this = other;
  if (other.is_zero()) return *this;
  if (thousands_ == other.thousands_) {
    nano_ = add(nano_, other.nano_);
    return *this;
  }
  // Of values so far apart that they do not share a scale, or beyond it, the greater is kept.
  if (other.thousands_ > thousands_) {
    nano_ = other.nano_;
    thousands_ = other.thousands_;
  }
  return *this;
}

}  // namespace headroom
