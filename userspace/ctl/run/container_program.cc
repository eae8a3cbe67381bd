// SPDX-License-Identifier: Apache-2.0
#include "ctl/run/container_program.h"

#include "config/yaml/section.h"
#include "config/yaml/yaml.h"

#include <string_view>

namespace headroom::ctl {
namespace {

using config::Diagnostics;
using config::Section;
using Role = Program::Role;

void append_strings(const Section& container, std::string_view key,
                    std::vector<std::string>& strings) {
  if (const auto list = container.list_of_strings(key))
    for (const config::LocatedText& word : *list)
      strings.push_back(word.text);
}

void read_environment(const Section& container, Program& program) {
  const auto entries = container.list_of_maps("env");
  if (!entries) return;
  for (const Section& entry : *entries) {
    const auto name = entry.string("name");
    if (entry.has("valueFrom"))
      entry.add_error("valueFrom", "not supported here; expected value");
    else if (!name || name->empty() || name->find('=') != std::string::npos)
      entry.add_error("name", "expected the name of a variable");
    else
      program.environment.emplace_back(*name, entry.string("value").value_or(""));
  }
}

Program read_program(const Section& container, Role role) {
  Program program{.role = role,
                  .container = container.string("name").value_or(""),
                  .command = {},
                  .environment = {},
                  .directory = container.string("workingDir").value_or("")};
  append_strings(container, "command", program.command);
  if (program.command.empty())
    container.add_error("command", "expected the program to run: images are not supported here");
  append_strings(container, "args", program.command);
  read_environment(container, program);
  if (!program.directory.empty() && program.directory[0] != '/')
    container.add_error("workingDir",
                        "expected an absolute path, found \"" + program.directory + "\"");
  return program;
}

std::vector<Program> read_programs(const Section& spec) {
  std::vector<Program> programs;
  if (const auto sections = spec.list_of_maps("initContainers"))
    for (const Section& section : *sections) {
      const bool sidecar = section.string("restartPolicy") == "Always";
      programs.push_back(read_program(section, sidecar ? Role::kSidecar : Role::kInit));
    }
  if (const auto sections = spec.list_of_maps("containers"))
    for (const Section& section : *sections)
      programs.push_back(read_program(section, Role::kMain));
  return programs;
}

}  // namespace

tl::expected<std::vector<Program>, Diagnostics> programs_of(const std::string& manifest,
                                                            const std::string& file) {
  Diagnostics diagnostics;
  std::vector<Program> programs;
  for (const config::yaml::Node& document : config::yaml::parse(manifest, file, diagnostics)) {
    if (!document.is_map()) continue;
    const Section object(document, "", file, diagnostics);
    if (const auto spec = object.map("spec")) programs = read_programs(*spec);
  }
  if (diagnostics.empty() && programs.empty())
    diagnostics.push_back({file, 0, "expected one Pod, not a list"});
  if (!diagnostics.empty()) return tl::make_unexpected(std::move(diagnostics));
  return programs;
}

}  // namespace headroom::ctl
