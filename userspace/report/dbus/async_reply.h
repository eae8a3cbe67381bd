// SPDX-License-Identifier: Apache-2.0
// AsyncReply: the answer to a method of sd-bus that another thread computes. Nothing waits for it:
// the event loop polls for the result.
#pragma once

#include <headroom/result.h>

#include <systemd/sd-bus.h>

#include <functional>
#include <future>
#include <string>

namespace headroom::report {

using FutureReply = std::future<Result<std::string>>;
using SendReply = std::function<int(sd_bus_message* call, const Result<std::string>& answer)>;

// As a method of sd-bus. `reply` is called on the thread of the bus's event loop, unless the bus
// goes away first.
int reply_async(sd_bus_message* call, FutureReply answer, SendReply send_reply);

}  // namespace headroom::report
