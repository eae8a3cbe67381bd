// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/systemd_run_command.h"

#include "act/units/unit_settings.h"

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Role = Program::Role;
using Arguments = std::vector<std::string>;

std::string exec_stop_post(const std::string& command) {
  return "--property=ExecStopPost=-" + command;
}

// Only the manifest's path is quoted: the slice's name has only letters, digits, dots and dashes.
void add_cleanup_of_single_container(const PodUnits& pod, Arguments& arguments) {
  arguments.push_back(exec_stop_post("/bin/rm -f \"" + pod.manifest.native() + "\""));
  arguments.push_back(exec_stop_post("/bin/systemctl --no-block stop " + pod.slice));
}

// headroomctl holds the manifest locked while it starts the pod. The cleanup of a main container
// waits for the lock. An init container leaves the cleanup to headroomctl, which waits for it,
// unless headroomctl is gone.
constexpr const char* kAfterStart = "if [ -e \"$$0\" ]; then flock \"$$0\" true; fi";
constexpr const char* kUnlessStarting = "flock --nonblock \"$$0\" true || exit 0";

// A dollar sign is doubled so that the shell expands it, not systemd.
void add_cleanup_after_last_container(const ContainerToStart& unit,
                                      const std::vector<Program>& programs, Arguments& arguments) {
  std::string units;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i].role == Role::kMain) units += " " + unit.pod_units.containers[i].unit;
  arguments.push_back(exec_stop_post(
      fmt::format("/bin/sh -c '{}; systemctl --quiet is-active{} || {{ rm -f \"$$0\"; systemctl "
                  "--no-block stop {}; }}' \"{}\"",
                  unit.program.role == Role::kInit ? kUnlessStarting : kAfterStart, units,
                  unit.pod_units.slice, unit.pod_units.manifest.native())));
}

void add_cleanup(const ContainerToStart& unit, const std::vector<Program>& programs,
                 Arguments& arguments) {
  if (programs.size() == 1) return add_cleanup_of_single_container(unit.pod_units, arguments);
  if (unit.program.role != Role::kSidecar)
    add_cleanup_after_last_container(unit, programs, arguments);
}

void add_program(const Program& program, Arguments& arguments) {
  for (const auto& [name, value] : program.environment)
    arguments.push_back("--setenv=" + name + "=" + value);
  if (!program.directory.empty()) arguments.push_back("--working-directory=" + program.directory);
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), program.command.begin(), program.command.end());
}

}  // namespace

Arguments systemd_run_command(const ContainerToStart& unit, const std::vector<Program>& programs,
                              Streams streams) {
  const auto& [pod, pod_units, container, program] = unit;
  Arguments arguments{"systemd-run",
                      "--quiet",
                      "--collect",
                      "--unit=" + container.unit,
                      "--slice=" + pod_units.slice,
                      "--description=pod " + pod.pod_namespace + "/" + pod.name,
                      fmt::format("--property=OOMScoreAdjust={}", container.oom_score_adj)};
  // Like a container: SIGTERM goes to the first process, and when it ends the others are killed.
  arguments.emplace_back("--property=KillMode=mixed");
  if (pod.termination_grace)
    arguments.push_back(
        fmt::format("--property=TimeoutStopSec={}", pod.termination_grace->count()));
  if (program.role == Role::kSidecar) arguments.emplace_back("--property=Restart=always");
  for (const std::string& value : act::unit_assignments(container.values))
    arguments.push_back("--property=" + value);
  add_cleanup(unit, programs, arguments);
  if (streams != Streams::kNone) {
    arguments.emplace_back("--wait");
    arguments.emplace_back(streams == Streams::kTerminal ? "--pty" : "--pipe");
  }
  add_program(program, arguments);
  return arguments;
}

}  // namespace headroom::ctl
