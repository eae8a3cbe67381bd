// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::json;

struct RepackOptions {
  bool dry_run = false;
  bool json = false;
};

struct Measure {
  const char* key;
  const char* what;
};
constexpr Measure kSpans[] = {
    {"numa_nodes", "NUMA nodes"}, {"sockets", "sockets"}, {"caches", "caches"}, {"cores", "cores"}};
constexpr Measure kTotals[] = {
    {"containers_without_all_cpus", "containers with fewer CPUs than requested"},
    {"containers_far_from_devices", "containers far from one of their devices"},
    {"numa_nodes", "NUMA nodes that containers span, added up"},
    {"sockets", "sockets"},
    {"caches", "caches"},
    {"cores", "cores"},
    {"free_cores", "whole cores free"},
    {"max_free_cpus_on_one_node", "CPUs free on the freest NUMA node"}};

std::string printable_field(const Json& object, const char* key) {
  const std::string text = printable(object.at(key).get<std::string>());
  return text.empty() ? "-" : text;
}

std::string pod_of(const Json& container) {
  const std::string space = printable(container.at("namespace").get<std::string>());
  return space.empty() ? printable_field(container, "pod")
                       : space + "/" + printable_field(container, "pod");
}

// "NUMA nodes 2 -> 1, cores 2 -> 1"; "" for a container that had no CPUs before.
std::string change_of(const Json& container) {
  if (printable_field(container, "from") == "-") return "was refused";
  std::string text;
  for (const Measure& span : kSpans) {
    const int before = container.at("before").at(span.key),
              after = container.at("after").at(span.key);
    if (before == after) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", span.what, before, after);
  }
  return text.empty() ? "makes room" : text;
}

bool still_on_old_cpus(const Json& container) {
  const std::string runs_on = printable_field(container, "runs_on");
  return runs_on != "-" && runs_on != printable_field(container, "to");
}

std::string moves_table(const Json& containers, const Screen& screen) {
  std::vector<Row> rows{{{"POD", Colour::kBold},
                         {"CONTAINER", Colour::kBold},
                         {"FROM", Colour::kBold},
                         {"TO", Colour::kBold},
                         {"", Colour::kBold}}};
  for (const Json& one : containers)
    rows.push_back({{pod_of(one)},
                    {printable_field(one, "container")},
                    {printable_field(one, "from")},
                    {printable_field(one, "to"), Colour::kGreen},
                    still_on_old_cpus(one)
                        ? Cell{"still on " + printable_field(one, "runs_on"), Colour::kRed}
                        : Cell{change_of(one)}});
  return table(rows, rows.front().size(), screen);
}

std::string totals_table(const Json& answer, const Screen& screen) {
  std::vector<Row> rows;
  for (const Measure& total : kTotals) {
    const int before = answer.at("before").at(total.key), after = answer.at("after").at(total.key);
    if (before != after) rows.push_back({{total.what}, {fmt::format("{} -> {}", before, after)}});
  }
  return table(rows, 2, screen);
}

}  // namespace

Result<std::string> render_repacking(std::string_view answer, const Screen& screen) {
  try {
    const Json json = Json::parse(answer);
    const Json& containers = json.at("containers");
    if (containers.empty()) return std::string("nothing to gain: no container is moved\n");
    return fmt::format("{} CPUs {}\n\n{}\n{}", json.at("moved_cpus").get<int>(),
                       json.at("dry_run").get<bool>() ? "would be moved" : "moved",
                       moves_table(containers, screen), totals_table(json, screen));
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

namespace {

bool all_moved(const std::string& answer) {
  const Json json = Json::parse(answer, nullptr, false);
  return json.is_object() && std::ranges::none_of(json.at("containers"), still_on_old_cpus);
}

int run_repack(const RepackOptions& options) {
  const CallResult answer = repack_cpus(options.dry_run);
  if (!answer) return print_error(answer.error());
  const auto text = options.json ? Result<std::string>(*answer + "\n")
                                 : render_repacking(*answer, screen_of_stdout());
  if (!text) return print_error(text.error());
  std::fputs(text->c_str(), stdout);
  return all_moved(*answer) ? 0 : kFailed;
}

}  // namespace

void add_cpus_repack(ArgumentParser& cpus, CliCommand& chosen) {
  auto options = std::make_shared<RepackOptions>();
  auto* repack = cpus.add_subcommand("repack", "Move fragmented exclusive CPUs together");
  repack->add_flag("--dry-run", options->dry_run, "Only show which containers would move, and why");
  repack->add_flag("--json", options->json, "Print headroomd's answer as JSON");
  repack->callback([&chosen, options] { chosen = [options] { return run_repack(*options); }; });
}

}  // namespace headroom::ctl
