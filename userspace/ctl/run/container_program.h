// SPDX-License-Identifier: Apache-2.0
// Program: the command that a container of a pod's manifest runs. There is no image, so the
// manifest must have it.
#pragma once

#include "config/yaml/yaml.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace headroom::ctl {

struct Program {
  enum class Role : std::uint8_t {
    kInit,     // must succeed before the next one is started
    kSidecar,  // an init container with restartPolicy: Always: runs beside all that come after it
    kMain,
  };
  Role role = Role::kMain;
  std::string container;
  std::vector<std::string> command;  // command, then args
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string directory{};  // workingDir; "": the unit's
};

// In the order in which they are started. The error has everything that prevents running them here.
tl::expected<std::vector<Program>, config::Diagnostics> programs_of(const std::string& manifest,
                                                                    const std::string& file);

}  // namespace headroom::ctl
