// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/exposition_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

namespace headroom::report {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Removes and returns the text before the next separator.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view head = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), head.size() + 1));
  return trimmed(head);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

struct Range {
  std::string type;
  std::string version;
  double quality = 1;
};

// One element of an Accept header (RFC 9110, 12.5.1): type/subtype;name=value;q=0.5
Range parse_range(std::string_view element) {
  Range range;
  range.type = lower(take(element, ';'));
  while (!element.empty()) {
    std::string_view parameter = take(element, ';');
    const std::string name = lower(take(parameter, '='));
    const std::string_view value = trimmed(parameter);
    if (name == "version") range.version = value;
    if (name != "q") continue;
    double quality = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), quality);
    range.quality = parsed.ec == std::errc{} ? quality : 0;
  }
  return range;
}

bool is_our_openmetrics(const Range& range) {
  const bool version =
      range.version.empty() || range.version == "1.0.0" || range.version == "0.0.1";
  return range.type == "application/openmetrics-text" && version;
}

}  // namespace

std::string_view content_type(Format format) {
  switch (format) {
    case Format::kText:
      return "text/plain; version=0.0.4; charset=utf-8";
    case Format::kOpenMetrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
  }
  return "";
}

Format negotiate_format(std::string_view accept) {
  double openmetrics = 0, text = 0;
  while (!accept.empty()) {
    const Range range = parse_range(take(accept, ','));
    if (is_our_openmetrics(range)) openmetrics = std::max(openmetrics, range.quality);
    if (range.type == "text/plain") text = std::max(text, range.quality);
  }
  return openmetrics > 0 && openmetrics >= text ? Format::kOpenMetrics : Format::kText;
}

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kTotal = "_total";

enum class Quotes : std::uint8_t { kPlain, kEscaped };

void append_escaped(std::string& out, std::string_view text, Quotes quotes) {
  const auto is_special = [quotes](char c) {
    return c == '\\' || c == '\n' || (c == '"' && quotes == Quotes::kEscaped);
  };
  // std::string_view::find_first_of() calls memchr() for each character.
  for (auto at = text.begin(); at != text.end();) {
    const auto special = std::find_if(at, text.end(), is_special);
    out.append(at, special);
    if (special == text.end()) return;
    out.push_back('\\');
    out.push_back(*special == '\n' ? 'n' : *special);
    at = special + 1;
  }
}

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Summary:
      return "summary";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Untyped:
      return "untyped";
  }
  return "untyped";
}

struct Head {
  std::string_view name;  // the name that samples begin with
  std::string_view type;
};

// In OpenMetrics, a counter's family name lacks the suffix _total, which its samples must have. A
// counter without the suffix (the kubelet's kubelet_evictions) is written as type unknown, under
// its own name.
Head head_of(Format format, std::string_view name, MetricType type) {
  if (format == Format::kText) return {name, type_name(type)};
  if (type == MetricType::Untyped) return {name, "unknown"};
  if (type != MetricType::Counter) return {name, type_name(type)};
  if (!name.ends_with(kTotal)) return {name, "unknown"};
  name.remove_suffix(kTotal.size());
  return {name, "counter"};
}

void append_labels(std::string& out, const std::vector<ClientMetric::Label>& labels,
                   std::string_view extra) {
  if (labels.empty() && extra.empty()) return;
  char before = '{';
  for (const auto& label : labels) {
    out.push_back(before);
    append_label(out, label.name, label.value);
    before = ',';
  }
  if (!extra.empty()) {
    out.push_back(before);
    out.append(extra);
  }
  out.push_back('}');
}

struct Line {
  std::string_view name;
  std::string_view suffix = "";
  std::string_view extra = "";  // a label ready to be written
  double value = 0;
};

void append_line(std::string& out, const ClientMetric& metric, const Line& line) {
  out.append(line.name).append(line.suffix);
  append_labels(out, metric.label, line.extra);
  out.push_back(' ');
  append_number(out, line.value);
  out.push_back('\n');
}

// OpenMetrics requires le="1.0" where the older format has le="1".
std::string bound_label(Format format, double bound) {
  std::string text = "le=\"";
  const std::size_t number = text.size();
  append_number(text, bound);
  const bool whole = text.find_first_not_of("-0123456789", number) == std::string::npos;
  if (format == Format::kOpenMetrics && whole) text += ".0";
  text += '"';
  return text;
}

void append_histogram(std::string& out, Format format, const MetricFamily& family,
                      const ClientMetric& metric) {
  const auto& histogram = metric.histogram;
  const auto count = static_cast<double>(histogram.sample_count);
  append_line(out, metric, {.name = family.name, .suffix = "_count", .value = count});
  append_line(out, metric, {.name = family.name, .suffix = "_sum", .value = histogram.sample_sum});
  double last = -HUGE_VAL;
  const auto bucket = [&](double bound, double value) {
    append_line(out, metric,
                {.name = family.name,
                 .suffix = "_bucket",
                 .extra = bound_label(format, bound),
                 .value = value});
    last = bound;
  };
  for (const auto& each : histogram.bucket)
    bucket(each.upper_bound, static_cast<double>(each.cumulative_count));
  if (!std::isinf(last) || last < 0) bucket(HUGE_VAL, count);
}

double value_of(MetricType type, const ClientMetric& metric) {
  switch (type) {
    case MetricType::Counter:
      return metric.counter.value;
    case MetricType::Gauge:
      return metric.gauge.value;
    case MetricType::Summary:  // headroom has none
    case MetricType::Histogram:
    case MetricType::Untyped:
      return metric.untyped.value;
  }
  return metric.untyped.value;
}

}  // namespace

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-Inf" : "+Inf";
    return;
  }
  std::array<char, 32> text;
  constexpr double kWhole = 1e15;  // below it every integer is exact, and cheaper to write
  constexpr int kDigits = 16;      // as prometheus-cpp
  const bool whole = std::fabs(value) < kWhole && std::trunc(value) == value;
  const auto written =
      whole ? std::to_chars(text.begin(), text.end(), static_cast<std::int64_t>(value))
            : std::to_chars(text.begin(), text.end(), value, std::chars_format::general, kDigits);
  out.append(text.data(), written.ptr);
}

void append_label(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append("=\"");
  append_escaped(out, value, Quotes::kEscaped);
  out.push_back('"');
}

void append_header(std::string& out, Format format, std::string_view name, std::string_view help,
                   MetricType type) {
  const Head head = head_of(format, name, type);
  if (!help.empty()) {
    out.append("# HELP ").append(head.name).push_back(' ');
    // The older format does not escape quotation marks in a help text.
    append_escaped(out, help, format == Format::kOpenMetrics ? Quotes::kEscaped : Quotes::kPlain);
    out.push_back('\n');
  }
  out.append("# TYPE ").append(head.name).push_back(' ');
  out.append(head.type).push_back('\n');
}

void append_family(std::string& out, Format format, const MetricFamily& family) {
  append_header(out, format, family.name, family.help, family.type);
  for (const ClientMetric& metric : family.metric) {
    if (family.type == MetricType::Histogram)
      append_histogram(out, format, family, metric);
    else
      append_line(out, metric, {.name = family.name, .value = value_of(family.type, metric)});
  }
}

std::string_view exposition_end(Format format) {
  return format == Format::kOpenMetrics ? "# EOF\n" : "";
}

}  // namespace headroom::report
