// SPDX-License-Identifier: Apache-2.0
#include "report/answer_later.h"

#include "base/bus_message.h"

#include <systemd/sd-event.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <utility>

namespace headroom::report {
namespace {

constexpr std::uint64_t kLookUsec = 20'000;

struct Waiting {
  BusMessage call;
  LaterAnswer answer;
  Reply reply;
};

int say(Waiting& waiting) {
  try {
    return waiting.reply(waiting.call.get(), waiting.answer.get());
  } catch (const std::exception&) {  // whoever was to answer is gone
    return sd_bus_reply_method_errno(waiting.call.get(), ECANCELED, nullptr);
  }
}

// The loop's own reference is the last: without it the source goes, and `forget` frees the rest.
int look(sd_event_source* source, std::uint64_t, void* user) {
  auto& waiting = *static_cast<Waiting*>(user);
  if (waiting.answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    sd_event_source_set_time_relative(source, kLookUsec);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
  }
  say(waiting);
  sd_event_source_disable_unref(source);
  return 0;
}

void forget(void* waiting) {
  delete static_cast<Waiting*>(waiting);
}

}  // namespace

int answer_later(sd_bus_message* call, LaterAnswer answer, Reply reply) {
  auto waiting = std::make_unique<Waiting>(
      Waiting{BusMessage(sd_bus_message_ref(call)), std::move(answer), std::move(reply)});
  sd_event* const event = sd_bus_get_event(sd_bus_message_get_bus(call));
  sd_event_source* source = nullptr;
  if (int r = sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, kLookUsec, 1, look,
                                         waiting.get());
      r < 0)
    return r;
  waiting.release();  // the source's now, which is the loop's
  sd_event_source_set_destroy_callback(source, forget);
  sd_event_source_set_floating(source, 1);
  sd_event_source_unref(source);
  return 1;
}

}  // namespace headroom::report
