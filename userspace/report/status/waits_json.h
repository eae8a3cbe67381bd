// SPDX-License-Identifier: Apache-2.0
// The parts of the status document about waits and about the BPF programs that observe them.
#pragma once

#include "report/view/node_view.h"
#include "report/view/waits_view.h"

#include <nlohmann/json.hpp>

namespace headroom::report {

// {"global": {"ns": …, "count": …, "p99_ns": …}, …}; causes that never occurred are left out.
nlohmann::ordered_json stalls_json(const hr_stalls& stalls);
nlohmann::ordered_json waits_json(const hr_waits& waits);
// {"stalls": …, "throttled": …} of all cgroups together; null: not watched.
nlohmann::ordered_json node_waits_json(const NodeWaits& waits);
nlohmann::ordered_json programs_json(const Programs& programs);

}  // namespace headroom::report
