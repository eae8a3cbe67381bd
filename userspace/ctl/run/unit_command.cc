// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/unit_command.h"

#include "act/unit_words.h"

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Role = Program::Role;
using Words = std::vector<std::string>;

std::string on_end(const std::string& command) {
  return "--property=ExecStopPost=-" + command;
}

// Words of ours: letters, digits, dots and dashes, but for the manifest's path.
void tidy_alone(const PlacedPod& pod, Words& words) {
  words.push_back(on_end("/bin/rm -f \"" + pod.manifest.native() + "\""));
  words.push_back(on_end("/bin/systemctl --no-block stop " + pod.slice));
}

// Who starts the pod holds its manifest locked: a main container's end waits for him; an init
// container's leaves all to him, who waits for it, unless he is gone.
constexpr const char* kAfterStart = "if [ -e \"$$0\" ]; then flock \"$$0\" true; fi";
constexpr const char* kUnlessStarting = "flock --nonblock \"$$0\" true || exit 0";

// A dollar sign is doubled: the shell is to have it, not systemd.
void tidy_with_others(const UnitOf& unit, const std::vector<Program>& programs, Words& words) {
  std::string units;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (programs[i].role == Role::kMain) units += " " + unit.placed.containers[i].unit;
  words.push_back(on_end(
      fmt::format("/bin/sh -c '{}; systemctl --quiet is-active{} || {{ rm -f \"$$0\"; systemctl "
                  "--no-block stop {}; }}' \"{}\"",
                  unit.program.role == Role::kInit ? kUnlessStarting : kAfterStart, units,
                  unit.placed.slice, unit.placed.manifest.native())));
}

void say_tidying(const UnitOf& unit, const std::vector<Program>& programs, Words& words) {
  if (programs.size() == 1) return tidy_alone(unit.placed, words);
  if (unit.program.role != Role::kSidecar) tidy_with_others(unit, programs, words);
}

void say_program(const Program& program, Words& words) {
  for (const auto& [name, value] : program.environment)
    words.push_back("--setenv=" + name + "=" + value);
  if (!program.directory.empty()) words.push_back("--working-directory=" + program.directory);
  words.emplace_back("--");
  words.insert(words.end(), program.command.begin(), program.command.end());
}

}  // namespace

Words unit_command(const UnitOf& unit, const std::vector<Program>& programs, Streams streams) {
  const auto& [pod, placed, container, program] = unit;
  Words words{"systemd-run",
              "--quiet",
              "--collect",
              "--unit=" + container.unit,
              "--slice=" + placed.slice,
              "--description=pod " + pod.pod_namespace + "/" + pod.name,
              fmt::format("--property=OOMScoreAdjust={}", container.oom_score_adj)};
  // As of a container: its first process is asked to end, and with its end the others are killed.
  words.emplace_back("--property=KillMode=mixed");
  if (pod.termination_grace)
    words.push_back(fmt::format("--property=TimeoutStopSec={}", pod.termination_grace->count()));
  if (program.role == Role::kSidecar) words.emplace_back("--property=Restart=always");
  for (const std::string& value : act::unit_words(container.values))
    words.push_back("--property=" + value);
  say_tidying(unit, programs, words);
  if (streams != Streams::kNone) {
    words.emplace_back("--wait");
    words.emplace_back(streams == Streams::kTerminal ? "--pty" : "--pipe");
  }
  say_program(program, words);
  return words;
}

}  // namespace headroom::ctl
