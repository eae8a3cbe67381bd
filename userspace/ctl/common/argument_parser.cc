// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"

#include <utility>

#include <CLI/CLI.hpp>

namespace headroom::ctl {

Argument* Argument::required() {
  option_->required();
  return this;
}

Argument* Argument::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Argument* Argument::check_positive() {
  option_->check(CLI::PositiveNumber);
  return this;
}

Argument* Argument::check_member(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return this;
}

Argument* Argument::excludes(const Argument* other) {
  option_->excludes(other->option_);
  return this;
}

Argument* Argument::needs(const Argument* other) {
  option_->needs(other->option_);
  return this;
}

bool Argument::empty() const {
  return option_->empty();
}

ArgumentParser::ArgumentParser(const char* description, const char* program)
    : owned_(std::make_unique<CLI::App>(description, program)), app_(owned_.get()) {}
ArgumentParser::ArgumentParser(CLI::App* subcommand) : app_(subcommand) {}
ArgumentParser::~ArgumentParser() = default;

ArgumentParser* ArgumentParser::add_subcommand(const char* name, const char* description) {
  CLI::App* subcommand = app_->add_subcommand(name, description);
  return subcommands_.emplace_back(std::make_unique<ArgumentParser>(subcommand)).get();
}

void ArgumentParser::group(const char* name) {
  app_->group(name);
}

Argument* ArgumentParser::keep(CLI::Option* option) {
  return arguments_.emplace_back(std::make_unique<Argument>(option)).get();
}

Argument* ArgumentParser::add_flag(const char* names, bool& variable, const char* description) {
  return keep(app_->add_flag(names, variable, description));
}

Argument* ArgumentParser::add_option(const char* names, std::string& variable,
                                     const char* description) {
  return keep(app_->add_option(names, variable, description));
}

Argument* ArgumentParser::add_option(const char* names, std::size_t& variable,
                                     const char* description) {
  return keep(app_->add_option(names, variable, description));
}

Argument* ArgumentParser::add_option(const char* names, std::int32_t& variable,
                                     const char* description) {
  return keep(app_->add_option(names, variable, description));
}

Argument* ArgumentParser::add_option(const char* names, std::optional<std::int64_t>& variable,
                                     const char* description) {
  return keep(app_->add_option(names, variable, description));
}

Argument* ArgumentParser::add_option(const char* names, std::vector<std::string>& variable,
                                     const char* description) {
  return keep(app_->add_option(names, variable, description));
}

void ArgumentParser::callback(std::function<void()> action) {
  app_->callback(std::move(action));
}

bool ArgumentParser::subcommand_given() const {
  return !app_->get_subcommands().empty();
}

void ArgumentParser::version(const std::string& text) {
  app_->set_version_flag("-V,--version", text);
}

void ArgumentParser::require_subcommand() {
  app_->require_subcommand(1);
}

void ArgumentParser::footer(const std::string& text) {
  app_->footer(text);
}

std::optional<int> ArgumentParser::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app_->exit(e);
  }
  return std::nullopt;
}

void throw_missing(const std::string& what) {
  throw CLI::RequiredError(what);
}

}  // namespace headroom::ctl
