// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

struct Flag {
  std::vector<std::string> names;  // "--sort", "-s"
  std::string what;
  bool takes_value = false;
  std::vector<std::string> words{};  // the allowed values; empty: any, such as a file
};

struct CommandWords {
  std::string name;
  std::string what;
  std::vector<Flag> flags;           // including those of its subcommands
  std::vector<std::string> below{};  // its subcommands, such as "repack" of cpus
};

// CLI::IsMember puts its values into the type's name: "TEXT:{name,over}".
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::vector<Flag> flags_of(const CLI::App& app) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : app.get_options()) {
    Flag flag{
        {}, option->get_description(), option->get_items_expected_max() > 0, words_of(*option)};
    for (const std::string& name : option->get_lnames())
      flag.names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      flag.names.push_back("-" + name);
    if (!flag.names.empty()) flags.push_back(std::move(flag));  // else positional
  }
  return flags;
}

CommandWords words_of_command(const CLI::App& command) {
  CommandWords all{command.get_name(), command.get_description(), flags_of(command)};
  for (const CLI::App* below : command.get_subcommands({})) {
    all.below.push_back(below->get_name());
    for (Flag& flag : flags_of(*below))
      if (std::ranges::none_of(
              all.flags, [&](const Flag& had) { return had.names.front() == flag.names.front(); }))
        all.flags.push_back(std::move(flag));
  }
  return all;
}

// The commands that --help shows.
std::vector<CommandWords> commands_of(const ArgumentParser& parser) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : parser.app().get_subcommands({}))
    if (!command->get_group().empty()) commands.push_back(words_of_command(*command));
  return commands;
}

std::string names_of(const std::vector<Flag>& flags) {
  std::string text;
  for (const Flag& flag : flags)
    text += fmt::format("{}{}", text.empty() ? "" : " ", fmt::join(flag.names, " "));
  return text;
}

std::string quoted(std::string_view text, std::string_view hazards) {
  std::string out;
  for (const char c : text) {
    if (c == '\'')
      out += "'\\'";
    else if (hazards.find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

// "'(-s --sort)'{-s,--sort}'[The sort key]:value:(a b)'"
std::string zsh_flag(const Flag& flag) {
  std::string spec;
  if (flag.names.size() == 1)
    spec = flag.names[0];
  else
    spec = fmt::format("'({})'{{{}}}", fmt::join(flag.names, " "), fmt::join(flag.names, ","));
  spec += fmt::format("'[{}]", quoted(flag.what, "[]:\\"));
  if (flag.takes_value)
    spec += flag.words.empty() ? std::string(":value:_files")
                               : fmt::format(":value:({})", fmt::join(flag.words, " "));
  return spec + "'";
}

std::string fish_flag(const std::string& command, const Flag& flag) {
  std::string line = "complete -c headroomctl";
  line += command.empty() ? " -n __fish_use_subcommand"
                          : fmt::format(" -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& name : flag.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (flag.takes_value)
    line += flag.words.empty() ? std::string(" -r -F")
                               : fmt::format(" -x -a '{}'", fmt::join(flag.words, " "));
  return line + fmt::format(" -d '{}'\n", quoted(flag.what, "\\"));
}

}  // namespace

std::string bash_completion(const ArgumentParser& app) {
  std::string names, words, values;
  for (const CommandWords& command : commands_of(app)) {
    names += " " + command.name;
    words += fmt::format("    {}) words='{}{}{}' ;;\n", command.name, names_of(command.flags),
                         command.below.empty() ? "" : " ", fmt::join(command.below, " "));
    for (const Flag& flag : command.flags)
      for (const std::string& name : flag.names)
        if (!flag.words.empty())
          values += fmt::format("    {}:{}) words='{}' ;;\n", command.name, name,
                                fmt::join(flag.words, " "));
        else if (flag.takes_value)
          values += fmt::format("    {}:{}) return ;;\n", command.name, name);
  }
  return "# bash completion of headroomctl; other words are completed as files.\n_headroomctl() "
         "{\n  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= "
         "i words=\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    [[ ${COMP_WORDS[i]} == -* ]] || "
         "{ command=${COMP_WORDS[i]}; break; }\n  done\n  case $command in\n    '') words='" +
         names_of(flags_of(app.app())) + names + "' ;;\n" + words +
         "  esac\n"
         "  case $command:$before in\n" +
         values +
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "}\n"
         "complete -o bashdefault -o default -F _headroomctl headroomctl\n";
}

std::string zsh_completion(const ArgumentParser& app) {
  std::string names, cases;
  for (const CommandWords& command : commands_of(app)) {
    names += fmt::format("    '{}:{}'\n", command.name, quoted(command.what, ":\\"));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const Flag& flag : command.flags)
      cases += " \\\n      " + zsh_flag(flag);
    cases += command.below.empty()
                 ? " \\\n      '*:file:_files' ;;\n"
                 : fmt::format(" \\\n      '1::what:({})' ;;\n", fmt::join(command.below, " "));
  }
  return "#compdef headroomctl\n"
         "_headroomctl() {\n"
         "  local -a commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "_headroomctl \"$@\"\n";
}

std::string fish_completion(const ArgumentParser& app) {
  std::string text = "# fish completion of headroomctl\n";
  for (const Flag& flag : flags_of(app.app()))
    text += fish_flag("", flag);
  for (const CommandWords& command : commands_of(app)) {
    text += fmt::format("complete -c headroomctl -n __fish_use_subcommand -f -a {} -d '{}'\n",
                        command.name, quoted(command.what, "\\"));
    for (const std::string& below : command.below)
      text += fmt::format("complete -c headroomctl -n '__fish_seen_subcommand_from {}' -f -a {}\n",
                          command.name, below);
    for (const Flag& flag : command.flags)
      text += fish_flag(command.name, flag);
  }
  return text;
}

void add_completion(ArgumentParser& app, CliCommand& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "Print the completions of a shell");
  completion->group("");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check_member({"bash", "zsh", "fish"});
  completion->callback([&app, &chosen, shell] {
    chosen = [&app, shell] {
      const std::string text = *shell == "bash"  ? bash_completion(app)
                               : *shell == "zsh" ? zsh_completion(app)
                                                 : fish_completion(app);
      std::fputs(text.c_str(), stdout);
      return 0;
    };
  });
}

}  // namespace headroom::ctl
