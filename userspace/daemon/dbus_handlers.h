// SPDX-License-Identifier: Apache-2.0
// The D-Bus requests that only the daemon can answer, as JSON. Called on the bus's thread.
#pragma once

#include "daemon/state/taint_store.h"
#include "report/view/cpus_view.h"
#include "report/view/node_status.h"

#include <headroom/result.h>

#include <string>
#include <vector>

namespace headroom::daemon {

// Whether each pod of a manifest would be admitted now: {"node", "allocatable", "pods":
// [{"admitted", "refusals", "resolved_by_preemption", "preemption_victims",
// "untolerated_preferred_taints"}]}. Errors: the node has not been looked at yet, or every
// complaint about the manifest, one a line.
Result<std::string> admit_json(const report::NodeStatusRef& status, const std::string& manifest);

// Edits written as kubectl taint writes them; the taints in force then. Errors: all at once, one a
// line.
Result<std::string> taint_json(TaintStore& store, const std::vector<std::string>& edits,
                               bool overwrite);

// Which container has which CPUs; only the machine's CPUs if CPU pinning is off.
Result<std::string> cpus_response_json(const report::PublishedCpusView& cpus_view);
// Where memory is not pinned: what the machine has.
Result<std::string> memory_response_json(const report::PublishedCpusView& cpus_view);

}  // namespace headroom::daemon
