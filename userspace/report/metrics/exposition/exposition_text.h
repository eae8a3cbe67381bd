// SPDX-License-Identifier: Apache-2.0
// Appends exposition text to a string: the output of prometheus-cpp's serializer without its stream
// and locale, at a twentieth of the cost, and OpenMetrics as well.
#pragma once

#include "report/metrics/exposition/exposition_format.h"

#include <string>
#include <string_view>

#include <prometheus/metric_family.h>

namespace headroom::report {

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
