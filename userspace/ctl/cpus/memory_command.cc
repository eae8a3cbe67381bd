// SPDX-License-Identifier: Apache-2.0
#include "base/human_readable.h"
#include "base/state/json_integer.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_answer.h"

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

std::string text_field(const nlohmann::json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

Cell amount_cell(const nlohmann::json& table, const char* key) {
  return {report::human_bytes(integer_of<std::int64_t>(table.at(key)))};
}

Row headings(std::initializer_list<const char*> titles) {
  Row row;
  for (const char* const title : titles)
    row.push_back({title, Colour::kBold});
  return row;
}

std::string nodes_table(const nlohmann::json& answer, const Screen& screen) {
  std::vector<Row> rows{
      headings({"NUMA", "GROUP", "RESOURCE", "TOTAL", "RESERVED", "ASSIGNED", "FREE"})};
  for (const nlohmann::json& node : answer.at("nodes"))
    for (const auto& [resource, table] : node.at("resources").items()) {
      const bool none_left = table.at("allocatable") != 0 && table.at("free") == 0;
      Cell free = amount_cell(table, "free");
      if (none_left) free.colour = Colour::kYellow;
      rows.push_back({{std::to_string(integer_of<int>(node.at("node")))},
                      {text_field(node, "group")},
                      {printable(resource)},
                      amount_cell(table, "total"),
                      amount_cell(table, "reserved"),
                      amount_cell(table, "assigned"),
                      std::move(free)});
    }
  return table(rows, rows.front().size(), screen);
}

// A row for each resource of a container.
void add_container(const nlohmann::json& container, std::vector<Row>& rows) {
  const std::string space = text_field(container, "namespace");
  const std::string pod = (space.empty() ? "" : space + "/") + text_field(container, "pod");
  const std::string runs_on = text_field(container, "runs_on");
  const auto add = [&](std::string resource, std::string size, const std::string& nodes) {
    const bool mismatch = !nodes.empty() && !runs_on.empty() && nodes != runs_on;
    rows.push_back({{pod},
                    {text_field(container, "container")},
                    {std::move(resource)},
                    {std::move(size)},
                    {nodes.empty() ? "-" : nodes, Colour::kGreen},
                    {runs_on.empty() ? "-" : runs_on, mismatch ? Colour::kRed : Colour::kNone},
                    {text_field(container, "refusal"), Colour::kRed}});
  };
  for (const nlohmann::json& block : container.at("blocks"))
    add(text_field(block, "resource"),
        report::human_bytes(integer_of<std::int64_t>(block.at("size"))),
        text_field(block, "nodes"));
  if (container.at("blocks").empty()) add("-", "-", "");
}

std::string containers_table(const nlohmann::json& answer, const Screen& screen) {
  std::vector<Row> rows;
  for (const nlohmann::json& container : answer.at("containers"))
    add_container(container, rows);
  if (rows.empty()) return "";
  rows.insert(rows.begin(),
              headings({"POD", "CONTAINER", "RESOURCE", "SIZE", "ASSIGNED", "RUNS ON", ""}));
  return "\n" + table(rows, rows.front().size(), screen);
}

int run_memory(bool json) {
  return print_answer(fetch_memory(), json, render_memory);
}

}  // namespace

Result<std::string> render_memory(std::string_view answer, const Screen& screen) {
  try {
    const nlohmann::json json = nlohmann::json::parse(answer);
    std::string text =
        fmt::format("mode {}  policy {}\n", text_field(json, "mode"), text_field(json, "policy"));
    if (json.at("state_not_saved").get<bool>())
      text += "error: the state file could not be written\n";
    return text + "\n" + nodes_table(json, screen) + containers_table(json, screen);
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

void add_memory(ArgumentParser& app, CliCommand& chosen) {
  auto json = std::make_shared<bool>();
  auto* memory = app.add_subcommand("memory", "The memory of each NUMA node");
  memory->group(kInspectGroup);
  memory->add_flag("--json", *json, "Print headroomd's answer as JSON");
  memory->callback([&chosen, json] { chosen = [json] { return run_memory(*json); }; });
}

}  // namespace headroom::ctl
