// SPDX-License-Identifier: Apache-2.0
// headroomctl pods: every pod on one line, sorted.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <cstdint>
#include <string>

namespace headroom::ctl {

enum class PodOrder : std::uint8_t {
  kName,
  kOver,
  kWorkingSet,
  kPriority,
  kStalls,
  kThrottled,
  kDisk
};

std::string render_pods(const Status& status, PodOrder order, const Screen& screen);

void add_pods(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
