// SPDX-License-Identifier: Apache-2.0
// systemd_run_command(): the systemd-run command line that starts a container as a unit.
// systemd-run passes the terminal or pipes and the exit status through, and waits.
#pragma once

#include "ctl/run/container_program.h"
#include "ctl/run/pod_units.h"

#include <headroom/pod.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::ctl {

enum class Streams : std::uint8_t {
  kPipes,     // our standard streams; waits for the container
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

}  // namespace headroom::ctl
