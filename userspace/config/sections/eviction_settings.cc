// SPDX-License-Identifier: Apache-2.0
#include "config/sections/section_settings.h"
#include "config/yaml/section.h"
#include "judge/eviction/threshold/threshold_config.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::config {
namespace {

StringMap as_map(const std::optional<LocatedValue>& settings) {
  StringMap map;
  if (!settings) return map;
  for (const LocatedText& word : settings->strings)
    map[word.key] = word.text;
  return map;
}

// What could not be read stands in as some grace period: thresholds come of it no more, but a soft
// threshold is not said to lack it.
StringMap graces(const std::optional<LocatedValue>& settings) {
  StringMap map = as_map(settings);
  if (!settings) return map;
  for (const std::string& key : settings->unreadable_keys)
    if (signal_named(key)) map.try_emplace(key, "1s");
  return map;
}

const std::optional<LocatedValue>& find_setting(const EvictionSettings& settings,
                                                std::string_view map) {
  if (map == "evictionSoft") return settings.soft;
  if (map == "evictionSoftGracePeriod") return settings.soft_grace;
  if (map == "evictionMinimumReclaim") return settings.min_reclaim;
  return settings.hard;
}

Diagnostic with_location(const EvictionSettings& settings, const ThresholdError& error) {
  Diagnostic diagnostic{"", 0, error.map + "." + error.key + ": " + error.what};
  const std::optional<LocatedValue>& map = find_setting(settings, error.map);
  if (!map) return diagnostic;
  diagnostic.file = map->file;
  diagnostic.line = map->line;
  for (const LocatedText& word : map->strings) {
    if (word.key != error.key) continue;
    diagnostic.line = word.line;
    // Upstream's words do not always say what it was that could not be read.
    if (error.what.find(word.text) == std::string::npos)
      diagnostic.what += " (it says \"" + word.text + "\")";
  }
  return diagnostic;
}

constexpr auto kEnforcements = std::to_array<std::string_view>({
    "pods",
    "system-reserved",
    "kube-reserved",
    "system-reserved-compressible",
    "kube-reserved-compressible",
    "none",
});

bool contains(const LocatedValue& settings, std::string_view key) {
  const auto equal = [&](const LocatedText& word) { return word.text == key; };
  return std::any_of(settings.strings.begin(), settings.strings.end(), equal);
}

// The error in the i-th word of the list; "": it is valid.
std::string enforcement_error(const LocatedValue& settings, std::size_t i) {
  const std::string& key = settings.strings[i].text;
  if (std::find(kEnforcements.begin(), kEnforcements.end(), key) == kEnforcements.end())
    return "unknown enforcement \"" + key + "\"" + did_you_mean(key, kEnforcements);
  for (std::size_t j = 0; j < i; ++j)
    if (settings.strings[j].text == key) return key + " is there twice";
  if (key == "none" && settings.strings.size() > 1) return "none must stand alone";
  if (key.ends_with("-compressible") && contains(settings, key.substr(0, key.rfind('-'))))
    return key + " cannot stand beside " + key.substr(0, key.rfind('-'));
  return "";
}

}  // namespace

// Of the kubelet's rules (kubelet: cm/node_container_manager_linux.go) those about the list itself;
// the others are resolve_reserved_settings()'.
std::vector<std::string> collect_enforcements(const EvictionSettings& settings,
                                              Diagnostics& diagnostics) {
  if (!settings.enforce_node_allocatable) return {"pods"};
  const LocatedValue& list = *settings.enforce_node_allocatable;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < list.strings.size(); ++i) {
    const std::string what = enforcement_error(list, i);
    if (what.empty())
      keys.push_back(list.strings[i].text);
    else
      diagnostics.push_back({list.file, list.strings[i].line, "enforceNodeAllocatable: " + what});
  }
  return keys;
}

std::vector<Threshold> build_eviction_thresholds(const EvictionSettings& settings,
                                                 const std::vector<std::string>& enforcements,
                                                 Diagnostics& diagnostics) {
  ThresholdMaps maps;
  if (settings.hard) maps.hard = as_map(settings.hard);
  maps.soft = as_map(settings.soft);
  maps.soft_grace = graces(settings.soft_grace);
  maps.min_reclaim = as_map(settings.min_reclaim);
  maps.enforce_node_allocatable = enforcements;
  maps.merge_defaults = settings.merge_defaults;

  auto thresholds = build_thresholds(maps);
  if (thresholds) return std::move(*thresholds);
  for (const ThresholdError& error : thresholds.error())
    diagnostics.push_back(with_location(settings, error));
  return {};
}

}  // namespace headroom::config
