// SPDX-License-Identifier: Apache-2.0
// Appends exposition text to a string. The text is that of prometheus-cpp's serializer, but without
// its stream and locale, at a twentieth of the cost; OpenMetrics is supported as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <prometheus/metric_family.h>

namespace headroom::report {

// Format: the two text formats of a scrape.

enum class Format : std::uint8_t {
  kText,         // Prometheus' text format, 0.0.4
  kOpenMetrics,  // OpenMetrics 1.0.0
};

std::string_view content_type(Format format);

// Chosen by the Accept header: OpenMetrics if it is named with at least the quality of plain text;
// otherwise, and for an invalid header, plain text.
Format negotiate_format(std::string_view accept);

// A value, the same in both formats: "17", "0.25", "+Inf", "NaN"; 16 significant digits.
void append_number(std::string& out, double value);
// name="value", escaped.
void append_label(std::string& out, std::string_view name, std::string_view value);
// The lines # HELP and # TYPE.
void append_header(std::string& out, Format format, std::string_view name, std::string_view help,
                   prometheus::MetricType type);
// A whole family: header and samples.
void append_family(std::string& out, Format format, const prometheus::MetricFamily& family);
// The end of a response.
std::string_view exposition_end(Format format);

}  // namespace headroom::report
