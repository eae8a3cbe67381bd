// SPDX-License-Identifier: Apache-2.0
// Tables of waits for memory, by cause. Pure: only strings are made.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"

#include <string>

namespace headroom::ctl {

// "global 1.2s (14)  limit 3m2s (90211)": the sum of all cgroups; "-" if the BPF program is not
// loaded.
std::string stall_totals(const Status& status);

// The pods that have waited longest, by cause; "" if no pod has waited.
std::string top_waiters_table(const Status& status, const Screen& screen);

// "limit 45.0%": the main cause of a pod's waits between two statuses; "-" if it did not wait.
std::string top_stall_cause(const PodStatus& before, const PodStatus& now, double elapsed_seconds);

// "programs: stall=memstall lifecycle=not-loaded"
std::string program_line(const Status& status);

}  // namespace headroom::ctl
