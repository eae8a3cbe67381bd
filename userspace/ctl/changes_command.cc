// SPDX-License-Identifier: Apache-2.0
#include "ctl/changes_command.h"

#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"

#include <cstdio>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

int show_changes(bool json) {
  // Errors in the configuration are ignored: the directories may still be correct.
  const config::Config config = config::read({}).config;
  const bool pins_cpus = config.cpus.mode == config::CpusConfig::Mode::kEnforce;
  const bool pins_memory =
      pins_cpus && config.cpus.memory_policy == config::CpusConfig::MemoryManagerPolicy::kStatic;
  auto changes = read_ledger(
      {.state_dir = config.state_dir,
       .cpu_state_file = pins_cpus ? config.cpus.state_file : std::filesystem::path(),
       .memory_state_file = pins_memory ? config.cpus.memory_state_file : std::filesystem::path()});
  if (!changes) return print_error(changes.error());
  // Without a daemon no slice is kept as configured.
  if (const auto status = fetch_status())
    for (Change& change : slice_changes(*status))
      changes->push_back(std::move(change));
  const std::string text =
      json ? changes_json(*changes) + "\n" : render_changes(*changes, screen_of_stdout());
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

std::string render_changes(const std::vector<Change>& changes, const Screen& screen) {
  if (changes.empty()) return "headroomd has changed nothing that it would restore\n";
  std::vector<Row> rows{{}};
  for (const char* title : {"SETTING", "OBJECT", "CURRENT", "ORIGINAL"})
    rows.front().push_back({title, Colour::kBold});
  for (const Change& change : changes)
    rows.push_back({{printable(change.setting)},
                    {printable(change.object)},
                    {printable(change.current)},
                    {printable(change.original)}});
  return table(rows, 4, screen);
}

std::string changes_json(const std::vector<Change>& changes) {
  Json list = Json::array();
  for (const Change& change : changes)
    list.push_back({{"setting", change.setting},
                    {"object", change.object},
                    {"current", change.current},
                    {"original", change.original}});
  return Json{{"changes", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_changes(ArgumentParser& app, CliCommand& chosen) {
  const auto json = std::make_shared<bool>();
  auto* changes_app =
      app.add_subcommand("changes", "What headroomd has changed, with the original values");
  changes_app->group(kInspectGroup);
  changes_app->add_flag("--json", *json, "As JSON");
  changes_app->callback([&chosen, json] { chosen = [json] { return show_changes(*json); }; });
}

}  // namespace headroom::ctl
