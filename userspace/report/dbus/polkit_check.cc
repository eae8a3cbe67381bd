// SPDX-License-Identifier: Apache-2.0
#include "report/dbus/polkit_check.h"

#include "base/bus/bus_message.h"
#include "base/log/journal.h"

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
  } catch (const std::exception&) {  // the answering thread ended without an answer
    return sd_bus_reply_method_errno(pending.call.get(), ECANCELED, nullptr);
  }
}

// The event loop holds the last reference. When it drops that, sd-event frees the source and
// delete_pending_reply() frees the rest.
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

void delete_pending_reply(void* pending) {
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
  sd_event_source_set_destroy_callback(source, delete_pending_reply);
  sd_event_source_set_floating(source, 1);
  sd_event_source_unref(source);
  return 1;
}

namespace {

// Long enough to type a password.
constexpr std::uint64_t kPolkitTimeoutUsec = 120'000'000;

// A call that waits for polkit's answer.
struct PendingCheck {
  BusMessage call;
  AuthorizedCall then;
};

int sender_uid(sd_bus_message* call, uid_t& uid) {
  sd_bus_creds* creds = nullptr;
  if (int r = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds); r < 0) return r;
  const int r = sd_bus_creds_get_euid(creds, &uid);
  sd_bus_creds_unref(creds);
  return r;
}

// polkit answers (is_authorized, is_challenge, details). An error, for example because polkit is
// missing, means: not authorized.
bool is_authorized(sd_bus_message* answer) {
  int authorized = 0;
  return !sd_bus_message_is_method_error(answer, nullptr) &&
         sd_bus_message_enter_container(answer, 'r', "bba{ss}") > 0 &&
         sd_bus_message_read(answer, "b", &authorized) > 0 && authorized != 0;
}

int on_polkit_reply(sd_bus_message* answer, void* user, sd_bus_error*) {
  const auto& pending_check = *static_cast<const PendingCheck*>(user);
  sd_bus_error error = SD_BUS_ERROR_NULL;
  int r = -EIO;  // if it throws
  log::log_exceptions("answer an authorized D-Bus call", [&] {
    r = is_authorized(answer)
            ? pending_check.then(pending_check.call.get(), &error)
            : sd_bus_error_set(&error, SD_BUS_ERROR_ACCESS_DENIED,
                               "denied: only for root and users allowed by polkit");
  });
  if (r < 0) r = sd_bus_reply_method_errno(pending_check.call.get(), r, &error);
  sd_bus_error_free(&error);
  return r;
}

void delete_pending_check(void* pending_check) {
  delete static_cast<PendingCheck*>(pending_check);
}

int make_polkit_request(sd_bus_message* call, const char* action, BusMessage& pending_check) {
  sd_bus_message* made = nullptr;
  if (int r = sd_bus_message_new_method_call(
          sd_bus_message_get_bus(call), &made, "org.freedesktop.PolicyKit1",
          "/org/freedesktop/PolicyKit1/Authority", "org.freedesktop.PolicyKit1.Authority",
          "CheckAuthorization");
      r < 0)
    return r;
  pending_check.reset(made);
  const bool may_prompt = sd_bus_message_get_allow_interactive_authorization(call) > 0;
  return sd_bus_message_append(made, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                               sd_bus_message_get_sender(call), action, 0, may_prompt ? 1 : 0, "");
}

}  // namespace

int require_authorization(sd_bus_message* call, uid_t allowed_uid, const char* action,
                          AuthorizedCall then, sd_bus_error* error) {
  uid_t uid = 0;
  if (int r = sender_uid(call, uid); r < 0) return r;
  if (uid == allowed_uid) return then(call, error);
  BusMessage request;
  if (int r = make_polkit_request(call, action, request); r < 0) return r;
  auto pending_check = std::make_unique<PendingCheck>(
      PendingCheck{BusMessage(sd_bus_message_ref(call)), std::move(then)});
  sd_bus_slot* slot = nullptr;
  const int r = sd_bus_call_async(sd_bus_message_get_bus(call), &slot, request.get(),
                                  on_polkit_reply, pending_check.get(), kPolkitTimeoutUsec);
  if (r < 0) return r;
  pending_check.release();  // owned by the slot, which the bus owns
  sd_bus_slot_set_destroy_callback(slot, delete_pending_check);
  sd_bus_slot_set_floating(slot, 1);
  sd_bus_slot_unref(slot);
  return 1;
}

}  // namespace headroom::report
