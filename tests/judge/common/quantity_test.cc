// SPDX-License-Identifier: Apache-2.0
// Quantities: what the vectors do not say of sums, saturation and order.
#include <headroom/quantity.h>

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace headroom {
namespace {

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

Quantity q(const std::string& text) {
  const auto quantity = Quantity::parse(text);
  EXPECT_TRUE(quantity) << text << ": " << quantity.error().what;
  return quantity ? *quantity : Quantity();
}

TEST(Quantity, IsFormattedWithTheLargestExactSuffix) {
  struct Case {
    const char* says;
    const char* text;
    const char* canonical;
  };
  for (const Case& c :
       {Case{"one_and_a_half_gibibytes", "1.5Gi", "1536Mi"},
        Case{"below_one_kibibyte_falls_back_to_milli", "0.1Ki", "102400m"},
        Case{"a_kibibyte_stays_binary", "1Ki", "1Ki"},
        Case{"a_thousand_and_twenty_three_is_decimal", "0.9990234375Ki", "1023"},
        Case{"leading_zeros_are_dropped", "0001k", "1k"},
        Case{"exponents_are_multiples_of_three", "1e4", "10e3"},
        Case{"finer_than_a_nano_rounds_up", "0.0000000001", "1n"},
        Case{"finer_than_a_nano_rounds_away_below_zero", "-1e-30", "-1e-9"},
        Case{"nothing_finer_is_lost_in_a_binary_fraction", "0.0000000001Gi", "107374183n"},
        Case{"zero_has_no_suffix", "0Mi", "0"}, Case{"a_suffix_alone_is_zero", "Mi", "0"},
        Case{"far_beyond_exa", "1000000E", "1000000E"},
        Case{"beyond_128_bits", "4120410386563E", "4120410386563E"},
        Case{"beyond_128_bits_in_peta", "-412041038656312345P", "-412041038656312345P"},
        Case{"with_a_fraction", "4120410386563.25E", "4120410386563250P"},
        Case{"a_power_beyond_128_bits", "12e300", "12e300"}}) {
    EXPECT_EQ(q(c.text).canonical(), c.canonical) << c.says;
  }
}

TEST(Quantity, RoundsAwayFromZeroToValues) {
  struct Case {
    const char* text;
    std::int64_t value;
    std::int64_t milli;
  };
  for (const Case& c : {Case{"1n", 1, 1}, Case{"-1n", -1, -1}, Case{"1500m", 2, 1500},
                        Case{"-1500m", -2, -1500}, Case{"1.0000001", 2, 1001}, Case{"0", 0, 0}}) {
    EXPECT_EQ(q(c.text).value(), c.value) << c.text;
    EXPECT_EQ(q(c.text).milli_value(), c.milli) << c.text;
  }
}

TEST(Quantity, SaturatesInsteadOfWrapping) {
  EXPECT_EQ(q("100E").value(), kMax);
  EXPECT_EQ(q("-100E").value(), -kMax);
  EXPECT_EQ(q("1E").milli_value(), kMax);
  EXPECT_EQ(q("9999999999Ei").value(), kMax) << "binary suffixes cap while being read";
  EXPECT_LT(q("1e100"), q("1e1000"));
  EXPECT_LT(q("-1e1000"), q("-1e100"));
  EXPECT_LT(q("1e28"), q("1e100"));
  EXPECT_LT(q("-1e100"), q("1e28"));
  EXPECT_EQ(q("1e100"), q("0.1e101"));
  EXPECT_EQ(q("-1e9999999999999").value(), -kMax);
  EXPECT_EQ(q("1e-9999999999999").canonical(), "1e-9");
  EXPECT_EQ(q("0e9999999999999").value(), 0);
  EXPECT_FALSE(Quantity::parse("1e99999999999999999999")) << "an exponent beyond int64: upstream's";
}

TEST(Quantity, SumsSaturateBothWays) {
  Quantity sum = q("1e29");
  sum += q("1e29");
  EXPECT_GT(sum, q("170e27"));
  Quantity debt = q("-1e29");
  debt += q("-1e29");
  EXPECT_LT(debt, q("-170e27"));
  debt += sum;
  EXPECT_TRUE(debt.is_zero());
}

TEST(Quantity, OfValuesFarApartASumIsTheGreater) {
  Quantity sum = q("1k");
  sum += q("1e9999999999999");
  EXPECT_EQ(sum, q("1e9999999999999"));
  EXPECT_LT(sum.canonical().size(), 60u) << "no line of zeros";
  sum += q("1k");
  EXPECT_EQ(sum, q("1e9999999999999"));
  EXPECT_EQ(sum.value(), kMax);
}

TEST(Quantity, SumKeepsTheLeftFormatUnlessThatIsZero) {
  Quantity binary = q("1Gi");
  binary += q("512M");
  EXPECT_EQ(binary.format(), Quantity::Format::kBinarySI);
  Quantity nothing;
  nothing += q("1Gi");
  EXPECT_EQ(nothing.canonical(), "1Gi");
}

TEST(Quantity, ComparesAcrossFormats) {
  EXPECT_EQ(q("1Ki"), q("1024"));
  EXPECT_EQ(q("1e3"), q("1k"));
  EXPECT_LT(q("1G"), q("1Gi"));
  EXPECT_LT(q("-1"), q("-1m"));
}

TEST(Quantity, OfAnyIntegerKeepsIt) {
  for (const std::int64_t each : {std::int64_t{0}, std::int64_t{-7}, kMax, -kMax}) {
    EXPECT_EQ(Quantity::of(each).value(), each);
    EXPECT_EQ(Quantity::of_milli(each).milli_value(), each);
  }
}

// Its canonical form has a higher exponent than it was read with.
TEST(Quantity, AnExponentBeyondAllBoundsSaturatesAndIsReadAsTheSame) {
  for (const char* text : {"30e8565478565479796043", "-3330e0000000000999999999999"}) {
    const auto parsed = Quantity::parse(text);
    ASSERT_TRUE(parsed);
    const auto again = Quantity::parse(parsed->canonical());
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, *parsed) << text;
    EXPECT_EQ(std::abs(parsed->value()), std::numeric_limits<std::int64_t>::max());
  }
}

TEST(Quantity, RoundTrips) {
  for (const char* text : {"1", "-1", "1k", "1Ki", "1536Mi", "100m", "1n", "12e6", "-7Gi",
                           "1000000E", "107374183n", "9223372036854775807", "170e27"})
    EXPECT_EQ(q(q(text).canonical()), q(text)) << text;
}

}  // namespace
}  // namespace headroom
