// SPDX-License-Identifier: Apache-2.0
// render_top(): one frame of `headroomctl top`, from two statuses and the size of the screen. Pure.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <optional>
#include <string>

namespace headroom::ctl {

// Rates of a pod between two statuses; absent if one of the totals is absent or no time has passed.
struct Rates {
  std::optional<double> cpus;            // CPU seconds per second
  std::optional<double> throttled;       // seconds per second
  std::optional<double> memory_waiting;  // seconds per second
  std::string stall = "-";               // the main cause of its waits, and their share
};
Rates rates_between(const PodStatus& before, const PodStatus& now, double elapsed_seconds);

// `before` is null in the first frame: rates are unknown then. `remark` is the last line, such as
// an error that does not end the view.
std::string render_top(const Status* before, const Status& now, const Screen& screen,
                       const std::string& remark = "");

}  // namespace headroom::ctl
