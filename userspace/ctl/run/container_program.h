// SPDX-License-Identifier: Apache-2.0
// Programs: what the containers of a pod's manifest run, where there is no image to say it.
#pragma once

#include "config/yaml/complaint.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

struct Program {
  enum class Role : std::uint8_t {
    kInit,     // must end well before the next is started
    kSidecar,  // an init container with restartPolicy: Always: runs beside all that come after it
    kMain,
  };
  Role role = Role::kMain;
  std::string container;
  std::vector<std::string> command;  // command, then args
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string directory{};  // workingDir; "": the unit's
};

// In the order they are started. Complaints: everything that keeps them from being run here.
tl::expected<std::vector<Program>, config::Diagnostics> programs_of(const std::string& manifest,
                                                                    const std::string& file);

}  // namespace headroom::ctl
