// SPDX-License-Identifier: Apache-2.0
// The command line as the commands describe it: CLI11 without its headers, which cost each file
// that includes them about six seconds of compiling. Names and meanings are CLI11's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headroom::ctl {

// An option or a positional argument.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument* required();
  Argument* capture_default_str();  // --help shows the value that the variable has now
  Argument* check_positive();
  Argument* check_member(const std::vector<std::string>& values);
  Argument* excludes(const Argument* other);
  Argument* needs(const Argument* other);
  bool empty() const;  // not given

 private:
  CLI::Option* option_;
};

// The program or one of its subcommands. Variables must live until the command line is parsed.
class ArgumentParser {
 public:
  ArgumentParser(const char* description, const char* program);
  explicit ArgumentParser(CLI::App* subcommand);
  ~ArgumentParser();

  ArgumentParser* add_subcommand(const char* name, const char* description);
  void group(const char* name);  // where --help of the parent lists it; empty: hidden
  Argument* add_flag(const char* names, bool& variable, const char* description);
  Argument* add_option(const char* names, std::string& variable, const char* description);
  Argument* add_option(const char* names, std::size_t& variable, const char* description);
  Argument* add_option(const char* names, std::int32_t& variable, const char* description);
  Argument* add_option(const char* names, std::optional<std::int64_t>& variable,
                       const char* description);
  Argument* add_option(const char* names, std::vector<std::string>& variable,
                       const char* description);
  // Called if the subcommand is given, after those of its own subcommands. It may call
  // throw_missing().
  void callback(std::function<void()> action);
  bool subcommand_given() const;

  void version(const std::string& text);
  void require_subcommand();
  void footer(const std::string& text);
  // The exit status if the program must end: 0 after --help and --version, which print their text;
  // not 0 after a wrong command line, with a message on stderr.
  std::optional<int> parse(int argc, const char* const* argv);

  const CLI::App& app() const { return *app_; }

 private:
  Argument* keep(CLI::Option* option);

  std::unique_ptr<CLI::App> owned_;  // the program's
  CLI::App* app_;
  std::vector<std::unique_ptr<ArgumentParser>> subcommands_{};
  std::vector<std::unique_ptr<Argument>> arguments_{};
};

// For a callback: ends parsing with "what is required".
[[noreturn]] void throw_missing(const std::string& what);

}  // namespace headroom::ctl
