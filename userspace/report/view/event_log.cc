// SPDX-License-Identifier: Apache-2.0
#include "report/view/event_log.h"

#include "base/json_text.h"

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::report {

using Json = nlohmann::ordered_json;

std::string EventLog::new_instance() {
  return fmt::format("{:x}", std::chrono::system_clock::now().time_since_epoch().count());
}

EventLog::EventLog(std::string instance) : instance_(std::move(instance)) {}

void EventLog::add(std::string_view type, WallTime at, const Json& fields) {
  if (kept_back_.size() == kSize) {
    ++lost_;
    return;
  }
  Json event{{"seq", next_++}, {"time", rfc3339_micro(at)}, {"type", type}};
  event.update(fields);
  kept_back_.push_back(std::make_shared<const std::string>(to_json_text(event)));
  flush();
}

void EventLog::flush() {
  if (kept_back_.empty()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (auto& event : kept_back_)
    ring_[++last_ % kSize] = std::move(event);
  kept_back_.clear();
}

std::string EventLog::json(std::uint64_t after) const {
  std::vector<std::shared_ptr<const std::string>> events;
  std::uint64_t first = 0, last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = last_;
    if (last > 0) first = last >= kSize ? last - kSize + 1 : 1;
    const std::uint64_t from = std::max(first, after < last ? after + 1 : last + 1);
    for (std::uint64_t n = from; first > 0 && n <= last && events.size() < kMaxPage; ++n)
      events.push_back(ring_[n % kSize]);
  }
  std::string text =
      fmt::format(R"({{"instance":"{}","first":{},"last":{},"events":[)", instance_, first, last);
  for (std::size_t i = 0; i < events.size(); ++i)
    text.append(i == 0 ? "" : ",").append(*events[i]);
  return text.append("]}");
}

}  // namespace headroom::report
