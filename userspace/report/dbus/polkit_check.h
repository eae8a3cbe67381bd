// SPDX-License-Identifier: Apache-2.0
// require_authorization(): checks whether the caller of a D-Bus method may call it. The user
// `allowed_uid` always may; others need polkit's authorization. No thread is blocked while polkit
// asks for a password.
#pragma once

#include <headroom/result.h>

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include <functional>
#include <future>
#include <string>

namespace headroom::report {

// reply_async(): sends an answer that another thread computes. No thread is blocked: the event loop
// polls for the result.

using FutureReply = std::future<Result<std::string>>;
using SendReply = std::function<int(sd_bus_message* call, const Result<std::string>& answer)>;

// Returns what a method handler of sd-bus returns. `send_reply` is called on the thread of the
// bus's event loop, unless the bus is closed first.
int reply_async(sd_bus_message* call, FutureReply answer, SendReply send_reply);

// Answers the call after it was authorized. Like a method handler of sd-bus, it returns a negative
// number on failure.
using AuthorizedCall = std::function<int(sd_bus_message* call, sd_bus_error* error)>;

// Returns what a method handler of sd-bus returns. The call is denied if polkit is missing.
int require_authorization(sd_bus_message* call, uid_t allowed_uid, const char* action,
                          AuthorizedCall then, sd_bus_error* error);

}  // namespace headroom::report
