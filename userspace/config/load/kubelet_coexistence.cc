// SPDX-License-Identifier: Apache-2.0
#include "config/load/kubelet_coexistence.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headroom::config {
namespace {

using CpusMode = CpusConfig::Mode;

constexpr const char* kKubeletMemoryState = "/var/lib/kubelet/memory_manager_state";

// The entry of headroom.<section>.<key>, or of headroom.<section> if there is no key; null: unset.
const yaml::Entry* find_key(const yaml::Node& document, std::string_view section,
                            std::string_view key) {
  const yaml::Node* node = &document;
  const yaml::Entry* entry = nullptr;
  for (const std::string_view name : {std::string_view("headroom"), section, key}) {
    if (name.empty()) continue;
    if (!node->is_map()) return nullptr;
    entry = yaml::find(*node, name);
    if (!entry || entry->value.is_null()) return nullptr;
    node = &entry->value;
  }
  return entry;
}

struct ConflictingWriter {
  std::string_view section, key;
  std::string what;
};

// Where it and we would both write.
std::vector<ConflictingWriter> find_conflicting_writers(const Config& config) {
  std::vector<ConflictingWriter> all;
  if (config.slices.mode == SlicesMode::kEnforce)
    all.push_back({"slices", "mode",
                   "headroom.slices.mode: a kubelet keeps the slices here, and writes over them "
                   "again and again; expected observe or off"});
  if (config.cpus.mode == CpusMode::kEnforce && config.cpus.policy == CpusConfig::Policy::kStatic)
    all.push_back({"cpus", "mode",
                   "headroom.cpus.mode: a kubelet assigns the CPUs here and does not know of "
                   "headroom's assignments; expected observe or off"});
  if (config.cpus.mode == CpusMode::kEnforce &&
      config.cpus.memory_policy == CpusConfig::MemoryManagerPolicy::kStatic)
    all.push_back({"cpus", "mode",
                   "headroom.cpus.mode: a kubelet assigns the memory of NUMA nodes here and does "
                   "not know of headroom's assignments; expected observe or off"});
  if (config.mirror_oom_scores)
    all.push_back({"oomScoreAdj", "",
                   "headroom.oomScoreAdj: a kubelet sets oom_score_adj of its pods' processes; "
                   "expected leave"});
  return all;
}

}  // namespace

void apply_kubelet_coexistence(const yaml::Node& document, const std::string& file,
                               bool kubelet_runs, Config& config, Diagnostics& diagnostics) {
  const bool configured = !config.kubernetes.kubelet.url.empty();
  config.kubelet_present = configured || kubelet_runs;
  if (!config.kubelet_present) return;
  if (!find_key(document, "slices", "mode")) config.slices.mode = SlicesMode::kObserve;
  if (!find_key(document, "cpus", "mode")) config.cpus.mode = CpusMode::kObserve;
  if (config.cpus.mode == CpusMode::kObserve && !find_key(document, "cpus", "memoryStateFile"))
    config.cpus.memory_state_file = kKubeletMemoryState;
  if (!find_key(document, "compatibilityMetrics", "")) config.compatibility_metrics = false;
  if (!configured) return;
  for (ConflictingWriter& each : find_conflicting_writers(config)) {
    const yaml::Entry* entry = find_key(document, each.section, each.key);
    diagnostics.push_back({file, entry ? entry->line : 0, std::move(each.what)});
  }
}

std::vector<std::string> kubelet_conflict_warnings(const Config& config) {
  std::vector<std::string> warnings;
  if (config.kubelet_present && config.kubernetes.kubelet.url.empty())
    for (ConflictingWriter& each : find_conflicting_writers(config))
      warnings.push_back(std::move(each.what));
  return warnings;
}

void record_kubelet_coexistence(const yaml::Node& document, const Config& config,
                                ConfigSettings& settings) {
  if (!config.kubelet_present) return;
  struct CoexistenceOverride {
    std::string_view section, key, path, value;
  };
  constexpr std::array kCoexistenceOverrides{
      CoexistenceOverride{"slices", "mode", "headroom.slices.mode", "\"observe\""},
      CoexistenceOverride{"cpus", "mode", "headroom.cpus.mode", "\"observe\""},
      CoexistenceOverride{"cpus", "memoryStateFile", "headroom.cpus.memoryStateFile",
                          "\"/var/lib/kubelet/memory_manager_state\""},
      CoexistenceOverride{"compatibilityMetrics", "", "headroom.compatibilityMetrics", "false"}};
  for (const CoexistenceOverride& each : kCoexistenceOverrides) {
    const auto setting = std::ranges::find_if(
        settings, [&](const ConfigSetting& one) { return one.path == each.path; });
    if (setting == settings.end() || find_key(document, each.section, each.key)) continue;
    if (each.key == "memoryStateFile" && config.cpus.mode != CpusMode::kObserve) continue;
    setting->value = each.value;
    setting->origin = "beside a kubelet";
  }
}

}  // namespace headroom::config
