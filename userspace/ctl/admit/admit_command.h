// SPDX-License-Identifier: Apache-2.0
// headroomctl admit: reports whether pods would be admitted now.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <string>
#include <string_view>

namespace headroom::ctl {

struct RenderedAdmission {
  std::string text;
  bool all_admitted = false;
};
// The daemon's answer as text.
Result<RenderedAdmission> render_admission(std::string_view answer, const Screen& screen);

// Exit status 0: all would be admitted; 1: not all; 2: invalid manifest; 3: no answer.
void add_admit(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
