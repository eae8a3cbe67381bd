// SPDX-License-Identifier: Apache-2.0
#include "report/metrics/exposition/exposition_format.h"

#include <algorithm>
#include <charconv>
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

}  // namespace headroom::report
