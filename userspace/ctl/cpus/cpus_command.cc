// SPDX-License-Identifier: Apache-2.0
#include "base/state/json_integer.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_answer.h"
#include "ctl/common/print_error.h"

#include <headroom/cpuset.h>
#include <headroom/quantity.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

CpuSet set_of(const nlohmann::json& object, const char* key) {
  return CpuSet::parse(object.at(key).get<std::string>()).value_or(CpuSet());
}

std::string printable_field(const nlohmann::json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

std::string pod_of(const nlohmann::json& container) {
  const std::string space = printable_field(container, "namespace");
  return space.empty() ? printable_field(container, "pod")
                       : space + "/" + printable_field(container, "pod");
}

// Whether its CPUs are what other containers leave of its pod's pool. An older daemon does not say.
bool shares_in_pod(const nlohmann::json& container) {
  return container.value("shares_in_pod", false);
}

// The position of a core; cores are sorted by it.
struct CorePlace {
  std::int64_t socket, numa, uncore, core;
  auto operator<=>(const CorePlace&) const = default;
};

class CpuTable {
 public:
  explicit CpuTable(const nlohmann::json& answer)
      : reserved_(set_of(answer, "reserved")), shared_(set_of(answer, "shared")) {
    for (const nlohmann::json& cpu : answer.at("cpus"))
      cores_[{cpu.at("socket"), cpu.at("numa"), cpu.at("uncore"), cpu.at("core")}].push_back(
          integer_of<Cpu>(cpu.at("cpu")));
    for (const nlohmann::json& container : answer.at("containers"))
      for (const Cpu cpu : set_of(container, "cpus")) {
        std::string& owner = owners_[cpu];
        const char* const separator = shares_in_pod(container) ? ", " : ", then ";
        owner += (owner.empty() ? "" : separator) + pod_of(container) + " " +
                 printable_field(container, "container");
      }
  }

  std::string render(const Screen& screen) const {
    std::vector<Row> rows{{{"SOCKET", Colour::kBold},
                           {"NUMA", Colour::kBold},
                           {"L3", Colour::kBold},
                           {"CORE", Colour::kBold},
                           {"CPUS", Colour::kBold},
                           {"OWNER", Colour::kBold}}};
    for (const auto& [place, cpus] : cores_)
      add_core(place, cpus, rows);
    return table(rows, rows.front().size(), screen);
  }

 private:
  Cell owner_of(Cpu cpu) const {
    if (const auto owner = owners_.find(cpu); owner != owners_.end())
      return {owner->second, Colour::kGreen};
    if (reserved_.contains(cpu)) return {"reserved", Colour::kYellow};
    if (shared_.contains(cpu)) return {"shared"};
    return {"left alone", Colour::kDim};
  }

  // One row for the threads of a core that have the same owner.
  void add_core(const CorePlace& place, const std::vector<Cpu>& cpus,
                std::vector<Row>& rows) const {
    std::vector<std::pair<Cell, CpuSet>> cpus_by_owner;
    for (const Cpu cpu : cpus) {
      Cell cell = owner_of(cpu);
      const auto same = std::ranges::find_if(
          cpus_by_owner, [&](const auto& entry) { return entry.first.text == cell.text; });
      if (same == cpus_by_owner.end())
        cpus_by_owner.emplace_back(std::move(cell), CpuSet{cpu});
      else
        same->second.insert(cpu);
    }
    for (auto& [cell, set] : cpus_by_owner)
      rows.push_back({{std::to_string(place.socket)},
                      {std::to_string(place.numa)},
                      {std::to_string(place.uncore)},
                      {std::to_string(place.core)},
                      {set.format()},
                      std::move(cell)});
  }

  CpuSet reserved_;
  CpuSet shared_;
  std::map<CorePlace, std::vector<Cpu>> cores_;
  std::map<Cpu, std::string> owners_;
};

std::string cpu_list_text(const CpuSet& cpus) {
  return cpus.empty() ? "-" : cpus.format();
}

// The reason of a refusal, whether it shares, or the partition type if it is not "member".
Cell remark(const nlohmann::json& container) {
  if (std::string refused = printable_field(container, "refusal"); !refused.empty())
    return {std::move(refused), Colour::kRed};
  if (shares_in_pod(container)) return {"shared in the pod"};
  std::string partition = printable_field(container, "partition");
  if (partition == "member") return {};
  const Colour colour = partition == "isolated" ? Colour::kNone : Colour::kYellow;
  return {std::move(partition), colour};
}

std::string containers(const nlohmann::json& answer, const Screen& screen) {
  std::vector<Row> rows;
  for (const nlohmann::json& container : answer.at("containers")) {
    const CpuSet cpus = set_of(container, "cpus"), runs_on = set_of(container, "runs_on");
    const bool mismatch = !cpus.empty() && !runs_on.empty() && cpus != runs_on;
    rows.push_back({{pod_of(container)},
                    {printable_field(container, "container")},
                    {std::to_string(integer_of<int>(container.at("requested")))},
                    {cpu_list_text(cpus), Colour::kGreen},
                    {cpu_list_text(runs_on), mismatch ? Colour::kRed : Colour::kNone},
                    remark(container)});
  }
  if (rows.empty()) return "";
  rows.insert(rows.begin(), {{"POD", Colour::kBold},
                             {"CONTAINER", Colour::kBold},
                             {"REQUESTED", Colour::kBold},
                             {"ASSIGNED", Colour::kBold},
                             {"RUNS ON", Colour::kBold},
                             {"", Colour::kBold}});
  return "\n" + table(rows, rows.front().size(), screen);
}

std::string cpu_quantity(const nlohmann::json& pool, const char* key) {
  return Quantity::of_milli(integer_of<std::int64_t>(pool.at(key))).canonical();
}

// Empty if no container has exclusive CPUs.
std::string pool_of(const nlohmann::json& answer) {
  const nlohmann::json& pool = answer.at("shared_pool");
  if (pool.is_null()) return "";
  const std::string size = cpu_quantity(pool, "size_millicores"),
                    requested = cpu_quantity(pool, "requested_millicores");
  std::string text =
      fmt::format("shared pool without reservations: CPU {}, requested {}", size, requested);
  if (const int unknown = pool.at("unknown_pods"); unknown > 0)
    text += fmt::format(", and {} more pod{} without a manifest", unknown, unknown == 1 ? "" : "s");
  if (!pool.at("enforced").get<bool>()) text += ", not enforced";
  text += '\n';
  if (pool.at("requested_millicores") > pool.at("size_millicores"))
    text += "error: the shared pool has fewer CPUs than its pods requested\n";
  return text;
}

std::string heading(const nlohmann::json& answer) {
  std::string text =
      fmt::format("mode {}  policy {}  shared {}  reserved {}", printable_field(answer, "mode"),
                  printable_field(answer, "policy"), cpu_list_text(set_of(answer, "shared")),
                  cpu_list_text(set_of(answer, "reserved")));
  for (const char* kind : {"offline", "isolated", "nohz_full"})
    if (const CpuSet cpus = set_of(answer, kind); !cpus.empty())
      text += fmt::format("  {} {}", kind, cpus.format());
  text += '\n' + pool_of(answer);
  if (const std::string error = printable_field(answer, "error"); !error.empty())
    text += "error: " + error + '\n';
  if (answer.at("state_not_saved").get<bool>())
    text += "error: the state file could not be written\n";
  return text;
}

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

std::string field_or_dash(const nlohmann::json& object, const char* key) {
  const std::string text = printable_field(object, key);
  return text.empty() ? "-" : text;
}

std::string change_of(const nlohmann::json& container) {
  if (field_or_dash(container, "from") == "-") return "was refused";
  std::string text;
  for (const Measure& span : kSpans) {
    const int before = container.at("before").at(span.key),
              after = container.at("after").at(span.key);
    if (before == after) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", span.what, before, after);
  }
  return text.empty() ? "makes room" : text;
}

bool still_on_old_cpus(const nlohmann::json& container) {
  const std::string runs_on = field_or_dash(container, "runs_on");
  return runs_on != "-" && runs_on != field_or_dash(container, "to");
}

std::string moves_table(const nlohmann::json& containers, const Screen& screen) {
  std::vector<Row> rows{{{"POD", Colour::kBold},
                         {"CONTAINER", Colour::kBold},
                         {"FROM", Colour::kBold},
                         {"TO", Colour::kBold},
                         {"", Colour::kBold}}};
  for (const nlohmann::json& one : containers)
    rows.push_back({{pod_of(one)},
                    {field_or_dash(one, "container")},
                    {field_or_dash(one, "from")},
                    {field_or_dash(one, "to"), Colour::kGreen},
                    still_on_old_cpus(one)
                        ? Cell{"still on " + field_or_dash(one, "runs_on"), Colour::kRed}
                        : Cell{change_of(one)}});
  return table(rows, rows.front().size(), screen);
}

std::string totals_table(const nlohmann::json& answer, const Screen& screen) {
  std::vector<Row> rows;
  for (const Measure& total : kTotals) {
    const int before = answer.at("before").at(total.key), after = answer.at("after").at(total.key);
    if (before != after) rows.push_back({{total.what}, {fmt::format("{} -> {}", before, after)}});
  }
  return table(rows, 2, screen);
}

}  // namespace

Result<std::string> render_cpus(std::string_view answer, const Screen& screen) {
  try {
    const nlohmann::json json = nlohmann::json::parse(answer);
    return heading(json) + "\n" + CpuTable(json).render(screen) + containers(json, screen);
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

namespace {

int run_cpus(bool json) {
  return print_answer(fetch_cpus(), json, render_cpus);
}

}  // namespace

void add_cpus(ArgumentParser& app, CliCommand& chosen) {
  auto json = std::make_shared<bool>();
  auto* cpus = app.add_subcommand("cpus", "The owner of each CPU");
  cpus->group(kInspectGroup);
  cpus->add_flag("--json", *json, "Print headroomd's answer as JSON");
  add_cpus_repack(*cpus, chosen);
  // A subcommand's callback runs before this one.
  cpus->callback([&chosen, cpus, json] {
    if (!cpus->subcommand_given()) chosen = [json] { return run_cpus(*json); };
  });
}

Result<std::string> render_repacking(std::string_view answer, const Screen& screen) {
  try {
    const nlohmann::json json = nlohmann::json::parse(answer);
    const nlohmann::json& containers = json.at("containers");
    if (containers.empty()) return std::string("nothing to gain: no container is moved\n");
    return fmt::format("{} CPUs {}\n\n{}\n{}", integer_of<int>(json.at("moved_cpus")),
                       json.at("dry_run").get<bool>() ? "would be moved" : "moved",
                       moves_table(containers, screen), totals_table(json, screen));
  } catch (const nlohmann::json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

namespace {

bool all_moved(const std::string& answer) {
  const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
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
