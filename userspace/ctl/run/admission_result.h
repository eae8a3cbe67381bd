// SPDX-License-Identifier: Apache-2.0
// AdmissionResult: the part of headroomd's answer about one pod that is needed to start it.
#pragma once

#include "ctl/run/preempt_pods.h"

#include <headroom/result.h>
#include <headroom/units.h>

#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

struct AdmissionResult {
  bool admitted = false;
  std::string text;                     // the verdict, for people
  std::vector<PreemptedPod> preempted;  // pods that must be stopped first
  Bytes allocatable_memory{};           // of the node
};

Result<AdmissionResult> read_admission(std::string_view answer);

}  // namespace headroom::ctl
