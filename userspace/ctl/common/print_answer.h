// SPDX-License-Identifier: Apache-2.0
// print_answer(): prints a daemon's answer, or why there is none, and returns the exit status.
#pragma once

#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/common/text_table.h"

#include <headroom/result.h>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::ctl {

using RenderAnswer = std::function<Result<std::string>(std::string_view answer, const Screen&)>;

// `json`: as the daemon wrote it, not as `render` shows it.
inline int print_answer(const CallResult& answer, bool json, const RenderAnswer& render) {
  if (!answer) {
    print_error(answer.error());
    return kFailed;
  }
  if (json) {
    std::puts(answer->c_str());
    return 0;
  }
  const auto text = render(*answer, screen_of_stdout());
  if (!text) return print_error(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace headroom::ctl
