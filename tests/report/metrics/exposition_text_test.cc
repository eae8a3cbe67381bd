// SPDX-License-Identifier: Apache-2.0
// Our text against prometheus-cpp's own, and what OpenMetrics asks for beyond it.
#include "report/metrics/exposition/exposition_text.h"

#include "report/metrics/metric_family.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace headroom::report {
namespace {

using prometheus::MetricFamily;

std::string ours(const std::vector<MetricFamily>& families, Format format = Format::kText) {
  std::string text;
  for (const MetricFamily& family : families)
    append_family(text, format, family);
  return text;
}

std::string theirs(const std::vector<MetricFamily>& families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

class RandomValues {
 public:
  explicit RandomValues(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  // What readings are like: counts, bytes, nanoseconds as seconds, and the extremes.
  double value() {
    const auto bits = static_cast<double>(random_() >> below(60));
    switch (below(6)) {
      case 0:
        return bits;
      case 1:
        return bits / 1e9;
      case 2:
        return bits / 1e9 / 1e9;
      case 3:
        return static_cast<double>(below(100));
      case 4:
        return bits * std::pow(10.0, static_cast<double>(below(40)) - 20);
      default:
        return std::numeric_limits<double>::infinity();
    }
  }
  std::string text() {
    static constexpr std::array<std::string_view, 8> kPieces{"web", "/",   "\\",       "\"",
                                                             "\n",  "x2d", "\xc3\xa4", " {}=,"};
    std::string result;
    for (std::size_t i = below(6); i > 0; --i)
      result += kPieces[below(kPieces.size())];
    return result;
  }
  Labels labels() {
    Labels result;
    for (std::size_t i = below(4); i > 0; --i)
      result.push_back({"label_" + std::to_string(i), text()});
    return result;
  }
  LatencyHistogram latency() {
    LatencyHistogram result;
    for (std::size_t i = below(50); i > 0; --i)
      result.observe(std::chrono::nanoseconds(random_() >> (20 + below(40))));
    return result;
  }

 private:
  std::mt19937_64 random_;
};

MetricFamilyBuilder random_family(RandomValues& chance, std::size_t number) {
  const std::string name = "family_" + std::to_string(number);
  if (chance.below(3) == 0) {
    auto family = MetricFamilyBuilder::histogram(name, "How long it took.");
    family.add(chance.latency(), {{"label", chance.text()}});
    return family;
  }
  auto family = chance.below(2) ? MetricFamilyBuilder::gauge(name, "A thing that has a \"value\".")
                                : MetricFamilyBuilder::counter(name + "_total", "");
  for (std::size_t i = 1 + chance.below(4); i > 0; --i)
    family.add(chance.value(), chance.labels());
  return family;
}

TEST(ExpositionText, IsWhatPrometheusCppWrites) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomValues chance(seed);
    std::vector<MetricFamily> families;
    for (std::size_t i = 0; i < 8; ++i)
      random_family(chance, i).append_to(families);
    ASSERT_EQ(ours(families), theirs(families)) << "seed " << seed;
  }
}

TEST(ExpositionText, EscapesLabelsAndHelp) {
  std::vector<MetricFamily> families;
  MetricFamilyBuilder::gauge("g", "say \"it\" in one\\line\n")
      .add(1.0, {{"path", "/a\\x2db \"q\"\n"}})
      .append_to(families);
  EXPECT_EQ(ours(families),
            "# HELP g say \"it\" in one\\\\line\\n\n# TYPE g gauge\n"
            "g{path=\"/a\\\\x2db \\\"q\\\"\\n\"} 1\n");
  EXPECT_EQ(ours(families, Format::kOpenMetrics),
            "# HELP g say \\\"it\\\" in one\\\\line\\n\n# TYPE g gauge\n"
            "g{path=\"/a\\\\x2db \\\"q\\\"\\n\"} 1\n");
}

TEST(ExpositionText, OpenMetricsNamesACounterWithoutItsTotal) {
  std::vector<MetricFamily> families;
  MetricFamilyBuilder::counter("seen_total", "Seen.").add(2.0).append_to(families);
  MetricFamilyBuilder::counter("kubelet_evictions", "Evicted.").add(3.0).append_to(families);
  EXPECT_EQ(ours(families, Format::kOpenMetrics),
            "# HELP seen Seen.\n# TYPE seen counter\nseen_total 2\n"
            "# HELP kubelet_evictions Evicted.\n# TYPE kubelet_evictions unknown\n"
            "kubelet_evictions 3\n");
}

TEST(ExpositionText, OpenMetricsWritesBoundsAsFloats) {
  std::vector<MetricFamily> families;
  MetricFamilyBuilder::histogram("h", "").add(LatencyHistogram{}).append_to(families);
  const std::string text = ours(families, Format::kOpenMetrics);
  EXPECT_NE(text.find("h_bucket{le=\"1.0\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_bucket{le=\"2.5\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_bucket{le=\"+Inf\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(ours(families).find("h_bucket{le=\"1\"} 0\n"), std::string::npos);
}

TEST(ExpositionText, NumbersRoundNothingThatMatters) {
  struct Case {
    double value;
    const char* text;
  };
  for (const Case& each : {Case{0, "0"},
                           {17, "17"},
                           {0.25, "0.25"},
                           {-3, "-3"},
                           {1e15, "1000000000000000"},
                           {123456789.123456789, "123456789.1234568"},
                           {std::numeric_limits<double>::infinity(), "+Inf"},
                           {-std::numeric_limits<double>::infinity(), "-Inf"},
                           {std::numeric_limits<double>::quiet_NaN(), "NaN"}}) {
    std::string text;
    append_number(text, each.value);
    EXPECT_EQ(text, each.text);
  }
}

}  // namespace
}  // namespace headroom::report
