// SPDX-License-Identifier: Apache-2.0
#include "act/units/transient_slice.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"
#include "ctl/run/pod_units.h"
#include "observe/node/systemd_units.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

struct StopOptions {
  std::string name;
  std::string pod_namespace = "default";
  bool json = false;
};

using Json = nlohmann::ordered_json;
using UnitManager = std::vector<std::string>;

Result<UnitManager> units_of(const StopOptions& options) {
  const auto units = observe::list_systemd_units(kRunUnitPattern);
  if (!units) return tl::make_unexpected(units.error());
  UnitManager found;
  for (const observe::UnitState& unit : *units)
    if (const auto name = run_name(unit.unit);
        name && name->pod_namespace == options.pod_namespace && name->pod == options.name)
      found.push_back(unit.unit);
  if (found.empty())
    return failure("headroomctl run started no pod " + options.pod_namespace + "/" + options.name +
                   ", or it has ended; see headroomctl list");
  return found;
}

int stop(const StopOptions& options) {
  const auto units = units_of(options);
  if (!units) return print_error(units.error());
  // When the last main container stops, its unit stops the slice: the other units may be gone then.
  bool any = false;
  for (const std::string& unit : *units) {
    const auto stopped = act::stop_unit(unit);
    if (!stopped && !any) return print_error(stopped.error());
    any = true;
  }
  if (options.json) {
    const Json json{
        {"namespace", options.pod_namespace}, {"name", options.name}, {"units", *units}};
    std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
  return 0;
}

}  // namespace

void add_stop(ArgumentParser& app, CliCommand& chosen) {
  const auto options = std::make_shared<StopOptions>();
  auto* stop_app = app.add_subcommand("stop", "Stop a pod that headroomctl run started");
  stop_app->group(kChangeGroup);
  stop_app->add_option("NAME", options->name, "The pod's name")->required();
  stop_app->add_option("--namespace", options->pod_namespace, "Its namespace")
      ->capture_default_str();
  stop_app->add_flag("--json", options->json, "Print what was stopped, as JSON");
  stop_app->callback([&chosen, options] { chosen = [options] { return stop(*options); }; });
}

}  // namespace headroom::ctl
