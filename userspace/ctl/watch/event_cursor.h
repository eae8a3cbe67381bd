// SPDX-License-Identifier: Apache-2.0
// EventCursor: which events of headroomd were seen already, across restarts of headroomd; and an
// event as a line of text. Pure.
#pragma once

#include <headroom/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::ctl {

struct EventPage {
  std::string instance;  // of headroomd: numbers begin again with each start
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<nlohmann::ordered_json> events{};
};
Result<EventPage> parse_event_page(std::string_view document);

struct NewEvents {
  std::vector<nlohmann::ordered_json> events{};
  std::uint64_t missed = 0;  // headroomd no longer had them
  bool ask_again = false;    // there are more
};

class EventCursor {
 public:
  // Ask headroomd for the events after this number.
  std::uint64_t after() const { return after_; }
  // The events of the page that are new. After a start of headroomd all of its events are new.
  NewEvents take(EventPage page);
  // Begins with the last `count` events of this page's headroomd.
  void begin(const EventPage& page, std::uint64_t count);

  // "INSTANCE NUMBER", for a file; an invalid text is a new cursor.
  std::string text() const;
  static EventCursor parse(std::string_view text);
  bool begun() const { return !instance_.empty(); }
  // The event was handled: a cursor that is kept in a file moves event by event.
  void set_after(std::uint64_t seq) { after_ = seq; }

 private:
  std::string instance_;
  std::uint64_t after_ = 0;
};

// "2026-11-24T20:36:15Z  eviction   default/hog: evicted for memory.available, 941Mi returned"
std::string event_line(const nlohmann::ordered_json& event);

}  // namespace headroom::ctl
