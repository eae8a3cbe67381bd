// SPDX-License-Identifier: Apache-2.0
#include "ctl/changes_command.h"

#include "act/cpus/cpu_checkpoint.h"
#include "act/cpus/cpuset_units.h"
#include "act/cpus/cpuset_writer.h"
#include "act/memory/memory_checkpoint.h"
#include "act/original_values.h"
#include "base/json_text.h"
#include "base/state/saved_taints.h"
#include "config/load/load.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/json_fields.h"
#include "ctl/common/print_error.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::ctl {
namespace {

using Changes = std::vector<Change>;

std::string limit_text(std::optional<Bytes> limit) {
  return limit ? std::to_string(limit->count) : "max";
}

std::string high_text(Bytes high) {
  return limit_text(high.count == INT64_MAX ? std::nullopt : std::optional(high));
}

std::string value_text(std::uint64_t value) {
  return value == act::kNoLimit ? "max" : std::to_string(value);
}

void add(const act::MemoryHighOverrides::Found& found, Changes& changes) {
  for (const auto& [cgroup, high] : found)
    changes.push_back({"memory.high", high.path, limit_text(high.set), limit_text(high.found)});
}

void add(const act::MemoryMaxOverrides::Found& found, Changes& changes) {
  for (const auto& [cgroup, max] : found) {
    // Neither raised nor with a brake: it was saved, and its writer is about to write, or has died.
    if (max.raised() || !max.brake)
      changes.push_back({"memory.max", max.path,
                         max.raised() ? limit_text(max.set) : "being changed",
                         limit_text(max.found)});
    if (max.brake)
      changes.push_back(
          {"memory.high", max.path, limit_text(max.brake), high_text(max.high_found)});
  }
}

void add(const act::CgroupOverrides::Found& found, Changes& changes) {
  for (const auto& [cgroup, each] : found) {
    changes.push_back(
        {act::file_of(each.setting), each.path, value_text(each.set), value_text(each.found)});
    // It reads 0 while cpu.idle is set.
    if (each.setting == act::OverriddenFile::kIdle)
      changes.push_back({act::file_of(act::OverriddenFile::kWeight), each.path, "0",
                         std::to_string(each.weight)});
  }
}

void add(const act::SuspendedLimits::Found& found, Changes& changes) {
  for (const auto& [cgroup, limits] : found)
    for (const auto& [file, value] : limits.values)
      changes.push_back({file, limits.path, "lifted for a kill", value});
}

// The processes of one cgroup had one value; those of a pod may have had several.
void add(const std::map<CgroupId, act::OriginalOomScores>& found, Changes& changes) {
  for (const auto& [pod, scores] : found) {
    std::set<int> originals;
    for (const auto& [cgroup, value] : scores.values)
      originals.insert(value);
    changes.push_back({"oom_score_adj", scores.path,
                       scores.applied ? std::to_string(*scores.applied) : "-",
                       fmt::format("{}", fmt::join(originals, ", "))});
  }
}

void add(const state::SavedTaints& taints, Changes& changes) {
  const auto has = [](const std::vector<Taint>& list, const Taint& taint) {
    return std::ranges::find(list, taint) != list.end();
  };
  for (const Taint& taint : taints.active)
    if (!has(taints.configured, taint))
      changes.push_back({"taint", "the node", to_string(taint), "-"});
  for (const Taint& taint : taints.configured)
    if (!has(taints.active, taint)) changes.push_back({"taint", "the node", "-", to_string(taint)});
}

void add(const std::optional<act::CpuCheckpoint>& checkpoint, Changes& changes) {
  if (!checkpoint) return;
  for (const auto& [pod, containers] : checkpoint->state.entries)
    for (const auto& [container, cpus] : containers)
      changes.push_back({"cpuset.cpus", pod + "/" + container, cpus.format(),
                         "shared: " + checkpoint->state.default_set.format()});
}

void add(const std::optional<act::MemoryCheckpoint>& checkpoint, Changes& changes) {
  if (!checkpoint) return;
  for (const auto& [pod, containers] : checkpoint->state.entries)
    for (const auto& [container, blocks] : containers)
      changes.push_back({"cpuset.mems", pod + "/" + container,
                         format_nodes(memory_nodes(checkpoint->state, pod, container)), "any"});
}

template <class Value>
Result<> add_result(const Result<Value>& read, Changes& changes) {
  if (!read) return tl::make_unexpected(read.error());
  add(*read, changes);
  return {};
}

Result<> add_unit_settings(const LedgerFiles& files, Changes& changes) {
  const auto paths = act::cpuset_units_file(files.state_dir).read();
  if (!paths) return tl::make_unexpected(paths.error());
  for (const std::string& path : *paths)
    for (const char* property : {"AllowedCPUs", "AllowedMemoryNodes"})
      if (const auto unit = act::unit_of(path))
        if (const auto value = act::runtime_setting(files.unit_settings, *unit, property))
          changes.push_back({property, path, *value, "-"});
  return {};
}

}  // namespace

Result<Changes> read_ledger(const LedgerFiles& files) {
  Changes changes;
  const std::filesystem::path& directory = files.state_dir;
  const state::StateFile<state::SavedTaints> taints(directory / state::kTaintsFile);
  Result<> done = add_result(act::memory_high_file(directory).read(), changes);
  if (done) done = add_result(act::memory_max_file(directory).read(), changes);
  if (done) done = add_result(act::cpu_burst_file(directory).read(), changes);
  if (done) done = add_result(act::cpu_suppress_file(directory).read(), changes);
  if (done) done = add_result(act::pod_swap_file(directory).read(), changes);
  if (done) done = add_result(act::suspended_limits_file(directory).read(), changes);
  if (done) done = add_result(act::oom_score_file(directory).read(), changes);
  if (done && !files.cpu_state_file.empty())
    done = add_result(act::CpuStateFile(files.cpu_state_file).load(), changes);
  if (done && !files.memory_state_file.empty())
    done = add_result(act::MemoryStateFile(files.memory_state_file).load(), changes);
  if (done) done = add_unit_settings(files, changes);
  if (done) done = add_result(taints.read(), changes);
  if (!done) return tl::make_unexpected(done.error());
  return changes;
}

Changes slice_changes(std::string_view status) {
  Changes changes;
  const nlohmann::json json = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (at(json, {"slices", "mode"}) != "enforce") return changes;
  for (const nlohmann::json& slice : at(json, {"slices", "slices"}))
    for (const nlohmann::json& setting : at(slice, {"settings"}))
      if (const nlohmann::json& desired = at(setting, {"desired"}); desired.is_string())
        changes.push_back({text(at(setting, {"setting"})), text(at(slice, {"slice"})),
                           text(desired), "of the unit"});
  return changes;
}

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
  // If no daemon runs, no slice is kept as configured, so none is listed.
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
  return to_json_text(Json{{"changes", std::move(list)}});
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
