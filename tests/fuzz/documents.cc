// SPDX-License-Identifier: Apache-2.0
// What headroomctl reads: the daemon's documents, those of headroom-kube and its own settings.
// Nothing of them controls the terminal.
#include "base/human_readable.h"
#include "ctl/changes_command.h"
#include "ctl/common/status_document.h"
#include "ctl/status/kubernetes_lines.h"
#include "ctl/top/top_settings.h"
#include "ctl/watch/event_cursor.h"
#include "fuzz.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::fuzz {
namespace {

bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f';
  });
}

void lines(std::string_view text) {
  for (const std::string& line :
       {ctl::api_line(text), ctl::kubelet_line(text, 1'000'000'000), ctl::scheduling_line(text),
        ctl::metrics_line(text), ctl::render_changes(ctl::slice_changes(text), {})})
    promise(is_printable(line), "nothing controls the terminal");
}

void events(std::string_view text) {
  const auto page = ctl::parse_event_page(text);
  if (!page) return;
  ctl::EventCursor cursor;
  for (const auto& event : cursor.take(*page).events)
    promise(is_printable(ctl::event_line(event)), "nothing controls the terminal");
}

void settings(std::string_view text) {
  const auto read = ctl::parse_top_settings(text);
  if (!read) return;
  const std::string written = ctl::top_settings_text(*read);
  const auto again = ctl::parse_top_settings(written);
  promise(again && ctl::top_settings_text(*again) == written,
          "settings that are written are read as the same");
}

}  // namespace
}  // namespace headroom::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text = fuzz::text_of(bytes, size);
  (void)ctl::parse_status(text);
  fuzz::lines(text);
  fuzz::events(text);
  fuzz::settings(text);
  return 0;
}
