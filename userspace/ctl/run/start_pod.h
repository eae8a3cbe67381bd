// SPDX-License-Identifier: Apache-2.0
// start_pod(): writes the manifest of an admitted pod, starts its slice and then a unit for each
// container in order, and removes the slice and the manifest at the end.
#pragma once

#include "base/file_io.h"
#include "ctl/run/container_program.h"
#include "ctl/run/pod_units.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace headroom::ctl {

// systemd_run_command(): the systemd-run command line that starts a container as a unit.
// systemd-run passes the terminal or pipes and the exit status through, and waits.

enum class Streams : std::uint8_t {
  kPipes,     // headroomctl's standard streams; waits for the container
  kTerminal,  // its own terminal; waits for the container
  kNone,      // output to the journal; does not wait
};

// One container of the pod, and its program.
struct ContainerToStart {
  const Pod& pod;
  const PodUnits& pod_units;
  const ContainerUnit& container;
  const Program& program;
};

// The unit that ends last removes the slice and the manifest, however it ends. The manifest of a
// pod with several containers stays locked until all of them are started.
std::vector<std::string> systemd_run_command(const ContainerToStart& unit,
                                             const std::vector<Program>& programs, Streams streams);

struct PodToStart {
  Pod pod;
  PodUnits pod_units;
  std::vector<Program> programs;  // one for each container, in the same order
  std::string manifest;           // the text of its manifest
  std::filesystem::path cgroups;  // where cgroup v2 is mounted
};

// Waits for other runs of headroomctl and takes the lock. A run holds it from the request for
// admission until headroomd counts its pod; otherwise two runs could get the same memory. Closing
// the descriptor unlocks it.
Result<Fd> lock_admission(const std::filesystem::path& file);

// Waits until headroomd's status lists the pod by the name in its manifest: from then on it counts
// in every admission. False: not within `timeout`.
using FetchStatus = std::function<Result<std::string>()>;
bool wait_until_listed(const Pod& pod, const FetchStatus& fetch, std::chrono::milliseconds timeout);

// Waits for the pod unless `streams` is kNone. Returns its exit status, or kFailed after printing
// an error; with kNone, 0 means that all containers were started. `admission` is unlocked as soon
// as headroomd lists the pod.
int start_pod(const PodToStart& start, Streams streams, Fd admission);

}  // namespace headroom::ctl
