// SPDX-License-Identifier: Apache-2.0
// headroomctl list: the pods that run has started and that are still there.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"
#include "observe/node/systemd_units.h"
#include "observe/pod/pod_cgroup_path.h"

#include <ctime>
#include <string>
#include <vector>

namespace headroom::ctl {

// For people, as of `now`.
std::string render_runs(const std::vector<observe::UnitState>& units,
                        const observe::PodCgroupParser& layout, std::time_t now,
                        const Screen& screen);
// {"runs": [{"namespace", "name", "container", "unit", "state", "qos", "uid", "pid", "since"}]}
std::string runs_json(const std::vector<observe::UnitState>& units,
                      const observe::PodCgroupParser& layout);

void add_list(CLI::App& app, CliCommand& chosen);

}  // namespace headroom::ctl
