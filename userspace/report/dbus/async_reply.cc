// SPDX-License-Identifier: Apache-2.0
#include "report/dbus/async_reply.h"

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

constexpr std::uint64_t kPollUsec = 20'000;

struct PendingReply {
  BusMessage call;
  FutureReply answer;
  SendReply send_reply;
};

int call_send_reply(PendingReply& pending) {
  try {
    return pending.send_reply(pending.call.get(), pending.answer.get());
  } catch (const std::exception&) {  // the thread that was to answer is gone
    return sd_bus_reply_method_errno(pending.call.get(), ECANCELED, nullptr);
  }
}

// The loop holds the last reference: when it drops it, sd-event frees the source and `forget`
// frees the rest.
int poll_future(sd_event_source* source, std::uint64_t, void* user) {
  auto& pending = *static_cast<PendingReply*>(user);
  if (pending.answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    sd_event_source_set_time_relative(source, kPollUsec);
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
  }
  call_send_reply(pending);
  sd_event_source_disable_unref(source);
  return 0;
}

void delete_pending(void* pending) {
  delete static_cast<PendingReply*>(pending);
}

}  // namespace

int reply_async(sd_bus_message* call, FutureReply answer, SendReply send_reply) {
  auto pending = std::make_unique<PendingReply>(
      PendingReply{BusMessage(sd_bus_message_ref(call)), std::move(answer), std::move(send_reply)});
  sd_event* const event = sd_bus_get_event(sd_bus_message_get_bus(call));
  sd_event_source* source = nullptr;
  if (int r = sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, kPollUsec, 1, poll_future,
                                         pending.get());
      r < 0)
    return r;
  pending.release();  // owned by the source, which the loop owns
  sd_event_source_set_destroy_callback(source, delete_pending);
  sd_event_source_set_floating(source, 1);
  sd_event_source_unref(source);
  return 1;
}

}  // namespace headroom::report
