// SPDX-License-Identifier: Apache-2.0
// Pre-stop: a pod's lifecycle.preStop.exec commands, all at once, as the kubelet runs them.
//
// On a host without a kubelet there is no runtime that could run them. Each command runs like a
// process of its container: in its cgroup (so the pod's limits apply, and killing the pod ends it),
// in its namespaces, with its credentials, environment and working directory.
#pragma once

#include <headroom/decision.h>

#include <stop_token>
#include <string>

namespace headroom::act {

// 0, or the first error (as Outcome::error). `directory` is the pod's cgroup, `socket` where the
// commands are run (command_starter.h).
int run_pre_stop(const Decision& decision, int directory, const std::string& socket,
                 Instant (*clock)(), const std::stop_token& stop);

}  // namespace headroom::act
