// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"

#include <headroom/cpuset.h>
#include <headroom/quantity.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::json;

CpuSet set_of(const Json& object, const char* key) {
  return CpuSet::parse(object.at(key).get<std::string>()).value_or(CpuSet());
}

std::string printable_field(const Json& object, const char* key) {
  return printable(object.at(key).get<std::string>());
}

std::string pod_of(const Json& container) {
  const std::string space = printable_field(container, "namespace");
  return space.empty() ? printable_field(container, "pod")
                       : space + "/" + printable_field(container, "pod");
}

// The position of a core; cores are sorted by it.
struct CorePlace {
  std::int64_t socket, numa, uncore, core;
  auto operator<=>(const CorePlace&) const = default;
};

class CpuTable {
 public:
  explicit CpuTable(const Json& answer)
      : reserved_(set_of(answer, "reserved")), shared_(set_of(answer, "shared")) {
    for (const Json& cpu : answer.at("cpus"))
      cores_[{cpu.at("socket"), cpu.at("numa"), cpu.at("uncore"), cpu.at("core")}].push_back(
          cpu.at("cpu").get<Cpu>());
    for (const Json& container : answer.at("containers"))
      for (const Cpu cpu : set_of(container, "cpus")) {
        std::string& owner = owners_[cpu];
        owner += (owner.empty() ? "" : ", then ") + pod_of(container) + " " +
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

// The reason of a refusal, or the partition type if it is not "member".
Cell remark(const Json& container) {
  if (std::string refused = printable_field(container, "refusal"); !refused.empty())
    return {std::move(refused), Colour::kRed};
  std::string partition = printable_field(container, "partition");
  if (partition == "member") return {};
  const Colour colour = partition == "isolated" ? Colour::kNone : Colour::kYellow;
  return {std::move(partition), colour};
}

std::string containers(const Json& answer, const Screen& screen) {
  std::vector<Row> rows;
  for (const Json& container : answer.at("containers")) {
    const CpuSet cpus = set_of(container, "cpus"), runs_on = set_of(container, "runs_on");
    const bool mismatch = !cpus.empty() && !runs_on.empty() && cpus != runs_on;
    rows.push_back({{pod_of(container)},
                    {printable_field(container, "container")},
                    {std::to_string(container.at("requested").get<int>())},
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

std::string cpu_quantity(const Json& pool, const char* key) {
  return Quantity::of_milli(pool.at(key).get<std::int64_t>()).canonical();
}

// Empty if no container has exclusive CPUs.
std::string pool_of(const Json& answer) {
  const Json& pool = answer.at("shared_pool");
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

std::string heading(const Json& answer) {
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

}  // namespace

Result<std::string> render_cpus(std::string_view answer, const Screen& screen) {
  try {
    const Json json = Json::parse(answer);
    return heading(json) + "\n" + CpuTable(json).render(screen) + containers(json, screen);
  } catch (const Json::exception& e) {
    return failure(std::string("read headroomd's answer: ") + e.what());
  }
}

namespace {

int run_cpus(bool json) {
  const CallResult answer = fetch_cpus();
  if (!answer) {
    print_error(answer.error());
    return kFailed;
  }
  if (json) {
    std::puts(answer->c_str());
    return 0;
  }
  const auto text = render_cpus(*answer, screen_of_stdout());
  if (!text) return print_error(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
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

}  // namespace headroom::ctl
