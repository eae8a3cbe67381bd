// SPDX-License-Identifier: Apache-2.0
// headroomctl list: the pods that run has started and that are still there.
#pragma once

#include "ctl/command.h"
#include "ctl/paint.h"
#include "observe/pod_cgroup.h"
#include "observe/unit_list.h"

#include <ctime>
#include <string>
#include <vector>

namespace headroom::ctl {

// For people, as of `now`.
std::string render_runs(const std::vector<observe::UnitState>& units,
                        const observe::PodLayout& layout, std::time_t now, const Screen& screen);
// {"runs": [{"namespace", "name", "container", "unit", "state", "qos", "uid", "pid", "since"}]}
std::string runs_json(const std::vector<observe::UnitState>& units,
                      const observe::PodLayout& layout);

void add_list(CLI::App& app, Command& chosen);

}  // namespace headroom::ctl
