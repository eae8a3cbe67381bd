// SPDX-License-Identifier: Apache-2.0
#include "report/status/status_parts.h"

#include "base/json_values.h"
#include "judge/eviction/rank/rank.h"
#include "report/view/slices_view.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

}  // namespace

Json memory_forecasts_json(const PeakForecast::Records& records) {
  Json json = Json::array();
  for (std::size_t i = 0; i < records.size() && i < kPeakPredictors.size(); ++i) {
    const PeakForecast::Record& record = records[i];
    json.push_back({{"predictor", kPeakPredictors[i].name},
                    {"bytes", record.forecast ? Json(static_cast<std::uint64_t>(*record.forecast))
                                              : Json(nullptr)},
                    {"held", record.held},
                    {"exceeded", record.exceeded},
                    {"mean_error_ratio", or_null(record.mean_error())}});
  }
  return json;
}

Json kubernetes_json(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (file.empty() || error || size > kMaxFileBytes) return nullptr;
  std::ifstream in(file);
  Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return nullptr;
  return json;
}

namespace {

// As text in the format of cgroupfs, because "max" is one of the values.
std::map<std::string, std::string> by_file(const CgroupValues& values) {
  std::map<std::string, std::string> map;
  for (CgroupSetting& setting : cgroup_settings(values))
    map.emplace(std::move(setting.file), std::move(setting.value));
  return map;
}

Json settings_json(const SliceView& slice) {
  const auto actual = by_file(slice.actual);
  const auto differs = by_file(slice.differs);
  Json settings = Json::array();
  for (const CgroupSetting& setting : cgroup_settings(slice.desired)) {
    const auto found = actual.find(setting.file);
    const auto drift = slice.drift.find(setting.file);
    settings.push_back({{"setting", setting.file},
                        {"desired", setting.value},
                        {"actual", found == actual.end() ? Json(nullptr) : Json(found->second)},
                        {"differs", differs.contains(setting.file)},
                        {"drift", drift == slice.drift.end() ? 0 : drift->second}});
  }
  return settings;
}

template <class T>
Json count(const std::optional<T>& amount) {
  return amount ? Json(amount->count) : Json(nullptr);
}

Json share_json(const Amounts& share) {
  Json json = Json::object();
  if (share.cpu) json["cpu"] = static_cast<double>(share.cpu->count) / 1000;
  if (share.memory) json["memory"] = share.memory->count;
  if (share.pids) json["tasks"] = share.pids->count;
  return json;
}

Json slice_json(const SliceView& slice) {
  const auto gone = slice.drift.find("slice");
  Json json{{"slice", slice.path},
            {"role", name(slice.role)},
            {"exists", slice.exists},
            {"share", share_json(slice.share)},
            {"usage",
             {{"cpu", or_null(slice.cpus)},
              {"memory", count(slice.memory)},
              {"tasks", count(slice.tasks)}}},
            {"settings", settings_json(slice)},
            {"removed", gone == slice.drift.end() ? 0 : gone->second},
            {"over_limit", count(slice.excess_usage)},
            {"limit_lowering",
             {{"in_progress", slice.lowering.in_progress},
              {"stalled", slice.lowering.late},
              {"done", slice.lowering.reached},
              {"failed", slice.lowering.missed}}}};
  if (!slice.missing_controllers.empty()) json["missing_controllers"] = slice.missing_controllers;
  if (!slice.error.empty()) json["error"] = slice.error;
  return json;
}

}  // namespace

Json waits_json(const hr_waits& waits) {
  const auto slow = quantile(waits, 0.99);
  return {{"ns", waits.ns},
          {"count", waits.count},
          {"p99_ns", slow ? Json(slow->count()) : Json(nullptr)}};
}

Json stalls_json(const hr_stalls& stalls) {
  Json json = Json::object();
  for (std::size_t cause = 0; cause < HR_STALL_CAUSES; ++cause)
    if (stalls.causes[cause].count > 0)
      json[std::string(kStallCauseNames[cause])] = waits_json(stalls.causes[cause]);
  return json;
}

Json cpu_waits_json(const CpuWaits* waits) {
  if (!waits) return nullptr;
  Json json = Json::object();
  for (std::size_t i = 0; i < kCpuWaitCauses; ++i)
    json[std::string(kCpuWaitCauseNames[i])] = waits->ns[i];
  return json;
}

namespace {

using PodsByCgroup = std::unordered_map<std::uint64_t, const Pod*>;

Json pod_name_json(const PodsByCgroup& pods, CgroupId cgroup) {
  const auto found = pods.find(cgroup.value);
  if (found == pods.end()) return nullptr;
  const Pod& pod = *found->second;
  return {{"namespace", pod.pod_namespace}, {"name", pod.name}, {"uid", pod.uid}};
}

// "holder" is null for what ran outside pods.
Json pairs_json(const std::vector<WaitPair>& pairs, const PodsByCgroup& pods) {
  Json json = Json::array();
  for (const WaitPair& pair : pairs) {
    const Json waiter = pod_name_json(pods, pair.waiter);
    const Json holder = pod_name_json(pods, pair.holder);
    if (waiter.is_null() || (holder.is_null() && pair.holder.value != 0)) continue;  // it is gone
    json.push_back({{"waiter", waiter}, {"holder", holder}, {"ns", pair.ns}});
  }
  return json;
}

}  // namespace

Json node_waits_json(const NodeWaits& waits, const CgroupTable& table) {
  PodsByCgroup pods;
  if (!table.cpu_pairs.empty() || !table.memory_pairs.empty())
    for (const PodRow& row : table.pods)
      pods.emplace(row.cgroup.value, row.pod.get());
  return {{"stalls", waits.stalls ? stalls_json(*waits.stalls) : Json(nullptr)},
          {"throttled", waits.throttles ? waits_json(*waits.throttles) : Json(nullptr)},
          {"cpu_pairs", pairs_json(table.cpu_pairs, pods)},
          {"memory_pairs", pairs_json(table.memory_pairs, pods)}};
}

Json swap_json(const std::optional<SwapRoom>& room) {
  if (!room) return nullptr;
  return {{"available", room->available},
          {"in_force", room->in_force},
          {"swap", room->swap},
          {"bound", room->bound_name()},
          {"kubelet", room->kubelet},
          {"memory", room->memory},
          {"gain", room->gain},
          {"filling", room->filling},
          {"fill_bytes_per_second", room->fill_rate},
          {"stalled_ratio", room->stalled},
          {"pods_stalled_ratio", room->pods_stalled},
          {"refaults_per_second", room->refault_rate},
          {"reclaimed_pages_per_second", room->reclaim_rate},
          {"resident", room->resident},
          {"cold", room->cold},
          {"compressed", room->compressed},
          {"compressed_size", room->compressed_size},
          {"incompressible", room->incompressible},
          {"on_disk", room->on_disk}};
}

std::vector<std::optional<std::uint32_t>> eviction_order(const NodeView& node,
                                                         const CgroupTable& cgroups,
                                                         const PodIndex& index) {
  constexpr Signal kSignal = Signal::kMemoryAvailable;
  std::unordered_set<std::uint64_t> victims;
  for (const Victim& victim : node.victims)
    if (victim.part.whole()) victims.insert(victim.cgroup.value);
  const bool swap_counts = node.swap_room && node.swap_room->in_force;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < cgroups.pods.size(); ++i) {
    const PodRow& row = cgroups.pods[i];
    const hr_record* record = index.record_of(row.cgroup);
    if (row.critical || victims.contains(row.cgroup.value) || !record || record->populated == 0)
      continue;
    Candidate candidate = candidate_for(kSignal, {},
                                        {.pod = row.pod,
                                         .cgroup = row.cgroup,
                                         .record = record,
                                         .memory_request = row.memory_request,
                                         .description = row.description},
                                        swap_counts ? SwapUse::kCounted : SwapUse::kIgnored);
    candidate.pod = static_cast<std::uint32_t>(i);
    if (candidate.usage) candidates.push_back(candidate);
  }
  rank(kSignal, candidates);
  std::vector<std::optional<std::uint32_t>> order(cgroups.pods.size());
  for (std::size_t i = 0; i < candidates.size(); ++i)
    order[candidates[i].pod] = static_cast<std::uint32_t>(i + 1);
  return order;
}

Json programs_json(const Programs& programs) {
  Json json = Json::object();
  for (const ProgramView& program : programs)
    if (!program.name.empty())
      json[std::string(program.name)] = {{"loaded", !program.hook.empty()},
                                         {"hook", program.hook},
                                         {"lost", program.lost_in_map + program.lost_in_ring}};
  return json;
}

Json slices_json(const SlicesView& view) {
  Json slices = Json::array();
  for (const SliceView& slice : view.slices)
    slices.push_back(slice_json(slice));
  Json json{{"mode", name(view.mode)},
            {"slices", std::move(slices)},
            {"dbus_calls",
             {{"made", view.calls},
              {"failed", view.calls_failed},
              {"seconds", seconds_of(view.calls_waited)}}}};
  if (!view.error.empty()) json["error"] = view.error;
  return json;
}

}  // namespace headroom::report
