// SPDX-License-Identifier: Apache-2.0
// What headroom-kube reports of the node to Kubernetes' scheduler is made from this document.
#pragma once

#include "report/view/published_views.h"

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// {"at_ns": …, "contention": {"cpu": share, "memory": share}, "hard_threshold": "memory.available",
// "shortage_seconds": …, "memory": {"capacity": …, "left": …, "growth": …, "batch": …}, "cpu":
// {"capacity_milli": …, "used_milli": …}}; null: unknown, or none.
//
// hard_threshold: the signal of a hard threshold that is met. shortage_seconds: until the first
// hard threshold is forecast to be crossed. left: bytes until the nearest hard threshold of memory.
// growth: bytes by which the pods' use is forecast to grow within the hour. batch: what is left
// then, and what batch pods use already; batch pods are those that request headroom.io/batch-memory
// or headroom.io/batch-cpu. used_milli: by all but batch pods, between the latest two sweeps. A
// share of time has thresholds of its own and is none of the amounts above.
nlohmann::ordered_json scheduling_json(const PublishedViews& views);

}  // namespace headroom::report
