// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/check.h"

#include "ctl/check/look.h"
#include "ctl/check/view.h"
#include "ctl/complain.h"

#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

namespace headroom::ctl {
namespace {

int run_check(bool json) {
  const check::Facts facts = check::look_at_host();
  const auto findings = check::findings(facts);
  const std::string text =
      json ? check::as_json(facts.kernel, findings)
           : check::render(facts.kernel, findings, Screen{.colour = screen_of_stdout().colour});
  std::fputs(text.c_str(), stdout);
  return check::works(findings) ? 0 : kFailed;
}

}  // namespace

void add_check(CLI::App& app, Command& chosen) {
  auto json = std::make_shared<bool>();
  auto* check = app.add_subcommand("check", "Does headroom work on this host?");
  check->group(kLooking);
  check->add_flag("--json", *json, "As JSON");
  check->callback([&chosen, json] { chosen = [json] { return run_check(*json); }; });
}

}  // namespace headroom::ctl
