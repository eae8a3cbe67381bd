// SPDX-License-Identifier: Apache-2.0
// headroomctl list: the pods that headroomctl run started and that still exist.
#pragma once

#include "ctl/common/cli_command.h"
#include "ctl/common/text_table.h"
#include "observe/node/systemd_units.h"
#include "observe/pod/pod_cgroup_path.h"

#include <ctime>
#include <string>
#include <vector>

namespace headroom::ctl {

// As a table. `now` is the current time, for ages.
std::string render_runs(const std::vector<observe::UnitState>& units,
                        const observe::PodCgroupParser& layout, std::time_t now,
                        const Screen& screen);
// {"runs": [{"namespace", "name", "container", "unit", "state", "qos", "uid", "pid", "since"}]}
std::string runs_json(const std::vector<observe::UnitState>& units,
                      const observe::PodCgroupParser& layout);

void add_list(ArgumentParser& app, CliCommand& chosen);

}  // namespace headroom::ctl
