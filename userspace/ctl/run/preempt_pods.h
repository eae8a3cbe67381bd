// SPDX-License-Identifier: Apache-2.0
// Stops the pods that a critical pod preempts, each with its own grace period (kubelet: lifecycle
// and preemption, Preempting), and waits until they are gone.
#pragma once

#include "config/config.h"

#include <headroom/pod.h>
#include <headroom/result.h>
#include <headroom/units.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

struct PreemptedPod {
  std::string pod_namespace;
  std::string name;
  std::string uid;
  QosClass qos = QosClass::kBestEffort;
};

// Reports each pod on stderr and in the journal. Error if one could not be stopped, or still exists
// long after its grace period.
Result<> preempt_pods(const std::vector<PreemptedPod>& pods, const std::string& preemptor,
                      const config::Config& config, const std::filesystem::path& cgroups);

// AdmissionResult: the part of headroomd's answer about one pod that is needed to start it.

struct AdmissionResult {
  bool admitted = false;
  std::string text;                     // the verdict, for people
  std::vector<PreemptedPod> preempted;  // pods that must be stopped first
  Bytes allocatable_memory{};           // of the node
};

Result<AdmissionResult> read_admission(std::string_view answer);

}  // namespace headroom::ctl
