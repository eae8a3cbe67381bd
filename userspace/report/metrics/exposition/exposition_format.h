// SPDX-License-Identifier: Apache-2.0
// Format: the two text formats of a scrape, and which of them a scraper wants.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom::report {

enum class Format : std::uint8_t {
  kText,         // Prometheus' text format, 0.0.4
  kOpenMetrics,  // OpenMetrics 1.0.0
};

std::string_view content_type(Format format);

// Chosen by the Accept header: OpenMetrics if it is named with at least the quality of plain text;
// otherwise, and for an invalid header, plain text.
Format negotiate_format(std::string_view accept);

}  // namespace headroom::report
