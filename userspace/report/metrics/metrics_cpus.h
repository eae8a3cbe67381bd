// SPDX-License-Identifier: Apache-2.0
// The metrics of CPU pinning: the kubelet's names where it has them, headroom_* otherwise.
#pragma once

#include "report/metrics/metrics.h"
#include "report/view/cpus_view.h"

namespace headroom::report {

void add_cpu_families(const CpusView& view, Families& families);

}  // namespace headroom::report
