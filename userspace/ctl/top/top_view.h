// SPDX-License-Identifier: Apache-2.0
// Top view: one frame of `headroomctl top`, from two statuses and the size of the screen. Pure.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <optional>
#include <string>

namespace headroom::ctl {

// Rates of a pod between two statuses; absent where either total is, or no time lies between.
struct Rates {
  std::optional<double> cpus;            // CPU seconds per second
  std::optional<double> throttled;       // seconds per second
  std::optional<double> memory_waiting;  // seconds per second
  std::string stall = "-";               // what it waited for most, and how much
};
Rates rates_between(const PodStatus& before, const PodStatus& now, double elapsed_seconds);

// `before` is null on the first frame: rates are not known then. `remark` is shown in the last
// line, such as an error that has not ended the view.
std::string render_top(const Status* before, const Status& now, const Screen& screen,
                       const std::string& remark = "");

}  // namespace headroom::ctl
