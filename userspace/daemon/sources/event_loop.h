// SPDX-License-Identifier: Apache-2.0
// Event, EventSource and timers: what the threads that run an sd-event loop share.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <systemd/sd-event.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace headroom::daemon {

struct UnrefEvent {
  void operator()(sd_event* event) const { sd_event_unref(event); }
  void operator()(sd_event_source* source) const { sd_event_source_unref(source); }
};
using Event = std::unique_ptr<sd_event, UnrefEvent>;
using EventSource = std::unique_ptr<sd_event_source, UnrefEvent>;

inline Result<Event> make_event() {
  sd_event* made = nullptr;
  if (const int r = sd_event_new(&made); r < 0) return errno_failure("create an event loop", -r);
  return Event(made);
}

// Rounded up: a turn a moment early would find its deadline not yet reached.
inline std::uint64_t usec(Duration length) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::microseconds>(length).count());
}
inline std::uint64_t usec(Instant at) {
  return usec(at.time_since_epoch());
}

// A timer that is off until arm_timer(). At the lowest priority: it does not delay what is due.
inline Result<EventSource> add_idle_timer(sd_event* event, sd_event_time_handler_t handler,
                                          void* data, const char* name) {
  constexpr std::chrono::milliseconds kAccuracy{1};
  sd_event_source* source = nullptr;
  if (const int r = sd_event_add_time(event, &source, CLOCK_MONOTONIC, UINT64_MAX, usec(kAccuracy),
                                      handler, data);
      r < 0)
    return errno_failure("add a timer", -r);
  EventSource timer(source);
  sd_event_source_set_enabled(source, SD_EVENT_OFF);  // a new timer is enabled once
  sd_event_source_set_description(source, name);
  sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
  return timer;
}

// Fires once.
inline void arm_timer(const EventSource& timer, Duration delay) {
  sd_event_source_set_time_relative(timer.get(), usec(delay));
  sd_event_source_set_enabled(timer.get(), SD_EVENT_ONESHOT);
}

}  // namespace headroom::daemon
