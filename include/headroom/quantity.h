// SPDX-License-Identifier: Apache-2.0
// Quantity: a Kubernetes resource quantity ("512Mi", "500m", "1e3"), exactly.
//
// Grammar, rounding and canonical form: k8s.io/apimachinery pkg/api/resource/quantity.go (v1.32).
// Values finer than 1n round away from zero to 1n; binary-suffixed magnitudes above 2^63-1 cap
// there, as upstream. One difference: upstream writes 1000E, which has no suffix of its own, as 1;
// here it stays 1000E.
#pragma once

#include <headroom/result.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

class Quantity {
 public:
  enum class Format : std::uint8_t { kDecimalSI, kBinarySI, kDecimalExponent };

  Quantity() = default;
  static Quantity of(std::int64_t value, Format format = Format::kDecimalSI);
  static Quantity of_milli(std::int64_t milli, Format format = Format::kDecimalSI);

  // Errors have the text of upstream's two messages.
  static Result<Quantity> parse(std::string_view text);

  int sign() const { return nano_ < 0 ? -1 : nano_ > 0 ? 1 : 0; }
  bool is_zero() const { return nano_ == 0; }
  // Rounded away from zero to an integer; saturates at ±(2^63-1) where upstream would wrap.
  std::int64_t value() const;
  // The same in thousandths of a unit.
  std::int64_t milli_value() const;
  Format format() const { return format_; }
  // The largest suffix that keeps an integer mantissa: 1.5Gi is "1536Mi".
  std::string canonical() const;

  // Numeric, across formats. The sum keeps the left side's format unless that is zero.
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    // The exponent is the least that fits: of two positive values the one with the greater exponent
    // is greater.
    if (a.sign() != b.sign()) return a.sign() <=> b.sign();
    if (a.thousands_ == b.thousands_) return a.nano_ <=> b.nano_;
    return a.sign() > 0 ? a.thousands_ <=> b.thousands_ : b.thousands_ <=> a.thousands_;
  }
  friend bool operator==(const Quantity& a, const Quantity& b) {
    return a.nano_ == b.nano_ && a.thousands_ == b.thousands_;
  }
  Quantity& operator+=(const Quantity& other);

 private:
  __extension__ using Nano = __int128;
  // The value is nano_ × 1000^thousands_. The exponent is 0 up to 1.7e29 units, which is far beyond
  // any machine, and the least that fits above; values with more digits than fit saturate.
  Nano nano_ = 0;
  std::int64_t thousands_ = 0;
  Format format_ = Format::kDecimalSI;
};

}  // namespace headroom
