// SPDX-License-Identifier: Apache-2.0
// headroom-kube's configuration: headroomd's own, without what headroom-kube itself wrote for it.
#pragma once

#include "config/config.h"
#include "config/flags/command_line.h"
#include "config/load/load.h"

namespace headroom::kube {

// The kubelet's configuration that headroom-kube wrote is not read: an error in it must not prevent
// the next query.
config::LoadResult load_config(const config::CommandLine& line);

// What is in force after SIGHUP. A configuration with an error changes nothing, and a key that
// needs a restart of headroomd keeps its value, so that both programs use the same files. Errors,
// warnings and what waits for a restart are logged.
config::Config reload_config(const config::CommandLine& line, config::Config running);

}  // namespace headroom::kube
