// SPDX-License-Identifier: Apache-2.0
// PolkitCheck: whether the caller of a method may call it: one user always may, others if polkit
// says so. Nothing waits while polkit asks for a password.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include <functional>
#include <future>
#include <string>

namespace headroom::report {

// AsyncReply: the answer to a method of sd-bus that another thread computes. Nothing waits for it:
// the event loop polls for the result.

using FutureReply = std::future<Result<std::string>>;
using SendReply = std::function<int(sd_bus_message* call, const Result<std::string>& answer)>;

// As a method of sd-bus. `reply` is called on the thread of the bus's event loop, unless the bus
// goes away first.
int reply_async(sd_bus_message* call, FutureReply answer, SendReply send_reply);

// Answers the call after it was authorized; like a method of sd-bus, negative on failure.
using AuthorizedCall = std::function<int(sd_bus_message* call, sd_bus_error* error)>;

// As a method of sd-bus. Denies if polkit is missing.
int require_authorization(sd_bus_message* call, uid_t allowed_uid, const char* action,
                          AuthorizedCall then, sd_bus_error* error);

}  // namespace headroom::report
