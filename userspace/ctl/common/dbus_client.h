// SPDX-License-Identifier: Apache-2.0
// D-Bus client: calls headroomd's methods over the system bus.
#pragma once

#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

// The status document can also be read over HTTP, for hosts where headroomd is not on the system
// bus: the host's bus does not let a headroomd in a container own its name.

// The address of the daemon (headroom.listen): the environment variable HEADROOM_HTTP, by default
// 127.0.0.1:9750. Empty: nothing is read over HTTP.
std::string http_address();

// `address` is HOST:PORT with a numeric host, as in headroom.listen.
Result<std::string> fetch_status_over_http(const std::string& address);

// Why a call failed, with what the operator should check.
struct CallError {
  enum class Kind : std::uint8_t {
    kUnreachable,  // no bus, no daemon, or no answer from it
    kRefused,      // the daemon refused the request; one line for each reason
    kForbidden,    // this user may not call the method
  };
  Kind kind = Kind::kUnreachable;
  std::string what;
};
using CallResult = tl::expected<std::string, CallError>;

// The status document, as headroomd wrote it: over the bus or, if headroomd cannot be reached
// there, over HTTP.
Result<std::string> fetch_status();

// The events with a number above `after`, as JSON (report/view/event_log.h); over HTTP like the
// status.
Result<std::string> fetch_events(std::uint64_t after);

// The configuration in force, as JSON.
CallResult fetch_config();

// The same as check_admission(), for pods that are started if they are admitted: headroomd counts
// what became of them.
CallResult request_admission(const std::string& manifest);
// Whether the pods of a manifest would be admitted, as JSON.
CallResult check_admission(const std::string& manifest);

// The owner of each CPU, as JSON.
CallResult fetch_cpus();

// The memory of each NUMA node, as JSON.
CallResult fetch_memory();

// Repacks exclusive CPUs. Returns the moves, or with `dry_run` those it would make, as JSON.
CallResult repack_cpus(bool dry_run);

// Edits the node's taints. Returns the resulting taints as JSON.
CallResult edit_taints(const std::vector<std::string>& edits, bool overwrite);

// Makes headroomd write a recording into a pipe for `length`, and then close the pipe.
CallResult start_recording(int pipe, std::chrono::seconds length);

}  // namespace headroom::ctl
