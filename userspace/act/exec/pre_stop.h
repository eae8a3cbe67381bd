// SPDX-License-Identifier: Apache-2.0
// Pre-stop: a pod's lifecycle.preStop.exec commands, all at once, as the kubelet runs them.
//
// On a plain host there is no runtime to exec through. So each runs beside a process of its
// container: in its cgroup (the pod's limits hold, and killing the pod ends it), in its namespaces,
// with its credentials, environment and working directory: what `exec` in the container would give.
#pragma once

#include <headroom/decision.h>

#include <stop_token>

namespace headroom::act {

// 0, or the first trouble there was (Outcome::error). `directory` is the pod's cgroup.
int run_pre_stop(const Decision& decision, int directory, Instant (*clock)(),
                 const std::stop_token& stop);

}  // namespace headroom::act
