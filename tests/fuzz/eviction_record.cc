// SPDX-License-Identifier: Apache-2.0
// A line of the record of evictions, changed by another program: explained, or left out, and
// nothing of it controls the terminal.
#include "base/human_readable.h"
#include "ctl/evictions/explain.h"
#include "ctl/evictions/explain_flight_recording.h"
#include "fuzz.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const auto json = nlohmann::json::parse(fuzz::text_of(bytes, size), nullptr, false);
  if (!json.is_object()) return 0;
  const auto& record = json.contains("record") ? json.at("record") : json;
  const auto& minute = json.contains("minute") ? json.at("minute") : nlohmann::json();
  std::string text = ctl::explain(record, minute, {});
  text += ctl::ranking_table(record, {});
  text += ctl::render_flight_recording(minute, "memory.available", {});
  std::erase(text, '\n');
  fuzz::promise(printable(text) == text, "a terminal shows it and is not controlled by it");
  return 0;
}
