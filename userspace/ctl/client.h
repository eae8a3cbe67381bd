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

// Why there is no answer, in words that tell the operator what to look at.
struct NoAnswer {
  enum class Kind : std::uint8_t {
    kUnreachable,  // no bus, no daemon, or no answer from it
    kRefused,      // the daemon says no to what was asked, one line each
    kForbidden,    // this user may not ask that
  };
  Kind kind = Kind::kUnreachable;
  std::string what;
};
using Answer = tl::expected<std::string, NoAnswer>;

// The status document, as headroomd wrote it.
Result<std::string> fetch_status();

// The configuration in force, as JSON.
Answer ask_config();

// Whether the pods of a manifest would be admitted, as JSON.
Answer ask_admission(const std::string& manifest);

// Which CPU is whose, as JSON.
Answer ask_cpus();

// Repacks exclusive CPUs, or says what that would move, as JSON.
Answer ask_repacking(bool dry_run);

// Edits the node's taints; those in force then, as JSON.
Answer edit_taints(const std::vector<std::string>& edits, bool overwrite);

// Has headroomd write a recording into a pipe for so long, and close it then.
Answer start_recording(int pipe, std::chrono::seconds length);

}  // namespace headroom::ctl
