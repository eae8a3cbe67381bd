// SPDX-License-Identifier: Apache-2.0
// PolkitCheck: whether the caller of a method may call it: one user always may, others if polkit
// says so. Nothing waits while polkit asks for a password.
#pragma once

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include <functional>

namespace headroom::report {

// Answers the call after it was authorized; like a method of sd-bus, negative on failure.
using AuthorizedCall = std::function<int(sd_bus_message* call, sd_bus_error* error)>;

// As a method of sd-bus. Denies if polkit is missing.
int require_authorization(sd_bus_message* call, uid_t allowed_uid, const char* action,
                          AuthorizedCall then, sd_bus_error* error);

}  // namespace headroom::report
