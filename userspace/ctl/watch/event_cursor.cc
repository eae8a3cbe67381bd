// SPDX-License-Identifier: Apache-2.0
#include "ctl/watch/event_cursor.h"

#include "base/state/json_integer.h"
#include "ctl/common/text_table.h"

#include <charconv>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::string string_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? printable(found->get<std::string>())
             : "";
}

std::uint64_t number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string pod_of(const Json& event) {
  const Json& pod = member(event, "pod");
  if (!pod.is_object()) return "";
  const std::string name = string_at(pod, "name");
  return name.empty() ? string_at(pod, "uid") : string_at(pod, "namespace") + "/" + name;
}

std::string eviction_text(const Json& event) {
  const std::string what = member(event, "whole_pod") == false ? " a part of it" : "";
  if (string_at(event, "phase") == "began")
    return fmt::format("{}: evicting{} for {}", pod_of(event), what, string_at(event, "signal"));
  std::string text = fmt::format("{}: {}{} for {}", pod_of(event), string_at(event, "outcome"),
                                 what, string_at(event, "signal"));
  if (const auto returned = whole_number_of(member(event, "memory_returned")))
    text += fmt::format(", {} returned", bytes(*returned));
  if (const std::string error = string_at(event, "error"); !error.empty()) text += ": " + error;
  return text;
}

std::string text_of(const Json& event, const std::string& type) {
  if (type == "eviction") return eviction_text(event);
  if (type == "condition")
    return string_at(event, "condition") +
           (member(event, "status") == true ? " is reported" : " is no longer reported");
  if (type == "drift") {
    const std::string desired = string_at(event, "desired");
    return fmt::format("{}: {} was changed by another program{}", string_at(event, "slice"),
                       string_at(event, "setting"),
                       desired.empty() ? "" : ", desired is " + desired);
  }
  return string_at(event, "message");
}

}  // namespace

Result<EventPage> parse_event_page(std::string_view document) {
  const Json json = Json::parse(document, nullptr, false);
  if (!json.is_object() || !member(json, "events").is_array())
    return failure("headroomd's answer is not a list of events");
  EventPage page{.instance = string_at(json, "instance"),
                 .first = number_at(json, "first"),
                 .last = number_at(json, "last")};
  for (const Json& event : member(json, "events"))
    if (event.is_object()) page.events.push_back(event);
  return page;
}

NewEvents EventCursor::take(EventPage page) {
  NewEvents found;
  if (page.instance != instance_) {
    const bool restarted = begun();
    instance_ = page.instance;
    after_ = 0;
    // The page was asked for with a number of the headroomd before it.
    if (restarted) return {.ask_again = true};
  }
  if (page.first > after_ + 1) found.missed = page.first - after_ - 1;
  for (Json& event : page.events)
    if (const std::uint64_t seq = number_at(event, "seq"); seq > after_) {
      after_ = seq;
      found.events.push_back(std::move(event));
    }
  found.ask_again = !found.events.empty() && after_ < page.last;
  return found;
}

void EventCursor::begin(const EventPage& page, std::uint64_t count) {
  instance_ = page.instance;
  after_ = page.last > count ? page.last - count : 0;
  if (page.first > 0 && after_ + 1 < page.first) after_ = page.first - 1;
}

std::string EventCursor::text() const {
  return fmt::format("{} {}\n", instance_, after_);
}

EventCursor EventCursor::parse(std::string_view text) {
  EventCursor cursor;
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return cursor;
  std::uint64_t after = 0;
  const auto parsed = std::from_chars(text.data() + space + 1, text.data() + text.size(), after);
  if (parsed.ec != std::errc()) return cursor;
  cursor.instance_ = text.substr(0, space);
  cursor.after_ = after;
  return cursor;
}

std::string event_line(const Json& event) {
  const std::string type = string_at(event, "type");
  std::string time = string_at(event, "time");
  if (const std::size_t point = time.find('.'); point != std::string::npos)
    time = time.substr(0, point) + "Z";
  return fmt::format("{}  {:9}  {}", time, type, text_of(event, type));
}

}  // namespace headroom::ctl
