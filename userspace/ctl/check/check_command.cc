// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/check_command.h"

#include "base/json_text.h"
#include "ctl/check/host_facts.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"

#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl::check {
namespace {

using Json = nlohmann::ordered_json;

Colour colour_of(State state) {
  switch (state) {
    case State::kOk:
      return Colour::kGreen;
    case State::kLimited:
    case State::kUnknown:
      return Colour::kYellow;
    case State::kMissing:
      return Colour::kRed;
  }
  return Colour::kNone;
}

std::string advice(const Finding& finding) {
  std::string text;
  if (!finding.cost.empty()) text += "  costs: " + printable(finding.cost) + '\n';
  if (!finding.remedy.empty()) text += "  do:    " + printable(finding.remedy) + '\n';
  if (text.empty()) return "";
  return fmt::format("\n{} ({})\n", finding.subject, name(finding.state)) + text;
}

}  // namespace

std::string render(const std::string& kernel, const std::vector<Finding>& findings,
                   const Screen& screen) {
  std::vector<Row> rows{
      {{"CHECK", Colour::kBold}, {"STATE", Colour::kBold}, {"FOUND", Colour::kBold}}};
  std::string below;
  for (const Finding& finding : findings) {
    rows.push_back({{std::string(finding.subject)},
                    {std::string(name(finding.state)), colour_of(finding.state)},
                    {printable(finding.found)}});
    if (finding.state != State::kOk) below += advice(finding);
  }
  const std::string verdict = works(findings)
                                  ? colourise("headroom works here", Colour::kGreen, screen)
                                  : colourise("headroom cannot work here", Colour::kRed, screen);
  return table(rows, 3, screen) + below +
         fmt::format("\n{} (headroom {}, Linux {})\n", verdict, HEADROOM_VERSION,
                     printable(kernel));
}

std::string as_json(const std::string& kernel, const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"check", finding.subject},
                      {"state", name(finding.state)},
                      {"details", finding.found},
                      {"effect", finding.cost},
                      {"remedy", finding.remedy}});
  const Json whole{{"version", HEADROOM_VERSION},
                   {"kernel", kernel},
                   {"works", works(findings)},
                   {"checks", std::move(checks)}};
  return to_json_text(whole) + "\n";
}

}  // namespace headroom::ctl::check

namespace headroom::ctl {
namespace {

int run_check(bool json) {
  const check::HostFacts facts = check::probe_host();
  const auto findings = check::findings(facts);
  const std::string text =
      json ? check::as_json(facts.kernel, findings)
           : check::render(facts.kernel, findings, Screen{.colour = screen_of_stdout().colour});
  std::fputs(text.c_str(), stdout);
  return check::works(findings) ? 0 : kFailed;
}

}  // namespace

void add_check(ArgumentParser& app, CliCommand& chosen) {
  auto json = std::make_shared<bool>();
  auto* check = app.add_subcommand("check", "Does headroom work on this host?");
  check->group(kInspectGroup);
  check->add_flag("--json", *json, "As JSON");
  check->callback([&chosen, json] { chosen = [json] { return run_check(*json); }; });
}

}  // namespace headroom::ctl
