// SPDX-License-Identifier: Apache-2.0
// The words that make a container a unit: systemd-run makes it, passes terminal or pipes and the
// exit status through, and waits.
#pragma once

#include "ctl/run/container_program.h"
#include "ctl/run/pod_units.h"

#include <headroom/pod.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::ctl {

enum class Streams : std::uint8_t {
  kPipes,     // our pipes, and it is waited for
  kTerminal,  // a terminal of its own, and it is waited for
  kNone,      // to the journal; the command does not wait
};

// Which of the pod's containers, and its program.
struct ContainerToStart {
  const Pod& pod;
  const PodUnits& pod_units;
  const ContainerUnit& container;
  const Program& program;
};

// What the pod leaves behind, the unit that ends last takes away, however it ends: slice and
// manifest. A pod of several containers holds its manifest locked until all of them are started.
std::vector<std::string> systemd_run_command(const ContainerToStart& unit,
                                             const std::vector<Program>& programs, Streams streams);

}  // namespace headroom::ctl
