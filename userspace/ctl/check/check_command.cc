// SPDX-License-Identifier: Apache-2.0
#include "ctl/check/check_output.h"
#include "ctl/check/host_facts.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"

#include <cstdio>
#include <memory>

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
