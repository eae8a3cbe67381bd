// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/json_text.h"
#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/print_error.h"
#include "ctl/run/pod_units.h"
#include "report/view/node_status.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;
using observe::UnitState;

// A service whose pod is known, by its name and by its cgroup.
struct Started {
  RunName name;
  std::optional<observe::PodCgroupPath> place;
  const UnitState* unit = nullptr;
};

std::vector<Started> started(const std::vector<UnitState>& units,
                             const observe::PodCgroupParser& layout) {
  std::vector<Started> all;
  for (const UnitState& unit : units)
    if (auto name = run_name(unit.unit))
      all.push_back({std::move(*name), layout.place(unit.cgroup), &unit});
  return all;
}

std::chrono::sys_seconds since(const UnitState& unit) {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::sys_time<std::chrono::microseconds>(
      std::chrono::microseconds(unit.since_realtime)));
}

Row row_of(const Started& run, std::time_t now) {
  const UnitState& unit = *run.unit;
  const bool active = unit.active == "active";
  std::optional<double> age;
  if (active && unit.since_realtime > 0)
    age = static_cast<double>(now) - static_cast<double>(unit.since_realtime) / 1e6;
  return {{printable(run.name.pod_namespace)},
          {printable(run.name.pod)},
          {run.name.container.empty() ? "-" : printable(run.name.container)},
          {run.place ? std::string(name(run.place->qos)) : "-"},
          {printable(unit.active + "/" + unit.sub), active ? Colour::kGreen : Colour::kYellow},
          {seconds(age)},
          {unit.main_pid > 0 ? std::to_string(unit.main_pid) : "-"}};
}

Json json_of(const Started& run) {
  const UnitState& unit = *run.unit;
  Json json{{"namespace", run.name.pod_namespace},
            {"name", run.name.pod},
            {"container", nullptr},
            {"unit", unit.unit},
            {"state", unit.active},
            {"qos", nullptr},
            {"uid", nullptr},
            {"pid", nullptr},
            {"since", nullptr}};
  if (!run.name.container.empty()) json["container"] = run.name.container;
  if (run.place) {
    json["qos"] = name(run.place->qos);
    json["uid"] = run.place->uid;
  }
  if (unit.main_pid > 0) json["pid"] = unit.main_pid;
  if (unit.since_realtime > 0) json["since"] = rfc3339(since(unit));
  return json;
}

int list(bool json) {
  const auto units = observe::list_systemd_units(kRunUnitPattern);
  if (!units) return print_error(units.error());
  // Errors in the configuration are ignored: podsCgroup may still be correct.
  const observe::PodCgroupParser layout(config::read({}).config.pods_cgroup);
  const std::string text =
      json ? runs_json(*units, layout) + "\n"
           : render_runs(*units, layout, std::time(nullptr), screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

std::string render_runs(const std::vector<UnitState>& units, const observe::PodCgroupParser& layout,
                        std::time_t now, const Screen& screen) {
  std::vector<Row> rows{{}};
  for (const char* title : {"NAMESPACE", "NAME", "CONTAINER", "QOS", "STATE", "FOR", "PID"})
    rows.front().push_back({title, Colour::kBold});
  for (const Started& run : started(units, layout))
    rows.push_back(row_of(run, now));
  return rows.size() == 1 ? "no pods started by headroomctl run\n" : table(rows, 5, screen);
}

std::string runs_json(const std::vector<UnitState>& units, const observe::PodCgroupParser& layout) {
  Json runs = Json::array();
  for (const Started& run : started(units, layout))
    runs.push_back(json_of(run));
  return to_json_text(Json{{"runs", std::move(runs)}});
}

void add_list(ArgumentParser& app, CliCommand& chosen) {
  const auto json = std::make_shared<bool>();
  auto* list_app = app.add_subcommand("list", "The pods that headroomctl run started");
  list_app->group(kInspectGroup);
  list_app->add_flag("--json", *json, "As JSON");
  list_app->callback([&chosen, json] { chosen = [json] { return list(*json); }; });
}

}  // namespace headroom::ctl
