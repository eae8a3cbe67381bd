// SPDX-License-Identifier: Apache-2.0
// Starting a placed pod: its manifest, its slice, a unit for each container, in their order; and
// taking away what is left.
#pragma once

#include "base/fd.h"
#include "ctl/run/container_program.h"
#include "ctl/run/pod_units.h"
#include "ctl/run/systemd_run_command.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::ctl {

struct PodToStart {
  Pod pod;
  PodUnits pod_units;
  std::vector<Program> programs;  // as many as it has containers, in their order
  std::string manifest;           // its text
  std::filesystem::path cgroups;  // where cgroup v2 is mounted
};

// One run at a time from the question for admission until its pod is there to be counted: else two
// could both be given the same memory. Waits for another; closing it unlocks it.
Result<Fd> lock_admission(const std::filesystem::path& file);

// Waits for the pod unless its streams are kNone; its exit status, or kFailed and said why. With
// kNone 0 says that everything runs. `admission` is unlocked once the pod's manifest and slice are
// there.
int start_pod(const PodToStart& start, Streams streams, Fd admission);

}  // namespace headroom::ctl
