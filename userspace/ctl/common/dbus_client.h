// SPDX-License-Identifier: Apache-2.0
// Client: asking headroomd over the system bus.
#pragma once

#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

// Why there is no answer, with what the operator should check.
struct CallError {
  enum class Kind : std::uint8_t {
    kUnreachable,  // no bus, no daemon, or no answer from it
    kRefused,      // the daemon says no to what was asked, one line each
    kForbidden,    // this user may not ask that
  };
  Kind kind = Kind::kUnreachable;
  std::string what;
};
using CallResult = tl::expected<std::string, CallError>;

// The status document, as headroomd wrote it.
Result<std::string> fetch_status();

// The configuration in force, as JSON.
CallResult fetch_config();

// Whether the pods of a manifest would be admitted, as JSON.
CallResult check_admission(const std::string& manifest);

// The owner of each CPU, as JSON.
CallResult fetch_cpus();

// Repacks exclusive CPUs, or says what that would move, as JSON.
CallResult repack_cpus(bool dry_run);

// Edits the node's taints; those in force then, as JSON.
CallResult edit_taints(const std::vector<std::string>& edits, bool overwrite);

// Has headroomd write a recording into a pipe for so long, and close it then.
CallResult start_recording(int pipe, std::chrono::seconds length);

}  // namespace headroom::ctl
