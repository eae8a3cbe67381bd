// SPDX-License-Identifier: Apache-2.0
#include "config/eviction_told.h"

#include "config/suggest.h"
#include "judge/eviction/threshold_config.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::config {
namespace {

StringMap as_map(const std::optional<Told>& told) {
  StringMap map;
  if (!told) return map;
  for (const Word& word : told->words)
    map[word.key] = word.text;
  return map;
}

// What could not be read stands in as some grace period: thresholds come of it no more, but a soft
// threshold is not said to lack it.
StringMap graces(const std::optional<Told>& told) {
  StringMap map = as_map(told);
  if (!told) return map;
  for (const std::string& key : told->unread)
    if (signal_named(key)) map.try_emplace(key, "1s");
  return map;
}

const std::optional<Told>& place(const EvictionTold& told, std::string_view map) {
  if (map == "evictionSoft") return told.soft;
  if (map == "evictionSoftGracePeriod") return told.soft_grace;
  if (map == "evictionMinimumReclaim") return told.min_reclaim;
  return told.hard;
}

Complaint located(const EvictionTold& told, const ThresholdError& error) {
  Complaint complaint{"", 0, error.map + "." + error.key + ": " + error.what};
  const std::optional<Told>& map = place(told, error.map);
  if (!map) return complaint;
  complaint.file = map->file;
  complaint.line = map->line;
  for (const Word& word : map->words) {
    if (word.key != error.key) continue;
    complaint.line = word.line;
    // Upstream's words do not always say what it was that could not be read.
    if (error.what.find(word.text) == std::string::npos)
      complaint.what += " (it says \"" + word.text + "\")";
  }
  return complaint;
}

constexpr auto kEnforcements = std::to_array<std::string_view>({
    "pods",
    "system-reserved",
    "kube-reserved",
    "system-reserved-compressible",
    "kube-reserved-compressible",
    "none",
});

bool says(const Told& told, std::string_view key) {
  const auto same = [&](const Word& word) { return word.text == key; };
  return std::any_of(told.words.begin(), told.words.end(), same);
}

// What speaks against the i-th word of the list; "" for nothing.
std::string objection(const Told& told, std::size_t i) {
  const std::string& key = told.words[i].text;
  if (std::find(kEnforcements.begin(), kEnforcements.end(), key) == kEnforcements.end())
    return "unknown enforcement \"" + key + "\"" + did_you_mean(key, kEnforcements);
  for (std::size_t j = 0; j < i; ++j)
    if (told.words[j].text == key) return key + " is there twice";
  if (key == "none" && told.words.size() > 1) return "none must stand alone";
  if (key.ends_with("-compressible") && says(told, key.substr(0, key.rfind('-'))))
    return key + " cannot stand beside " + key.substr(0, key.rfind('-'));
  return "";
}

}  // namespace

// Of the kubelet's rules (KUBELET.md 3.3) those about the list itself; the others are
// settle_reserves()'.
std::vector<std::string> enforcements_told(const EvictionTold& told, Complaints& complaints) {
  if (!told.enforce_node_allocatable) return {"pods"};
  const Told& list = *told.enforce_node_allocatable;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < list.words.size(); ++i) {
    const std::string what = objection(list, i);
    if (what.empty())
      keys.push_back(list.words[i].text);
    else
      complaints.push_back({list.file, list.words[i].line, "enforceNodeAllocatable: " + what});
  }
  return keys;
}

std::vector<Threshold> thresholds_told(const EvictionTold& told,
                                       const std::vector<std::string>& enforcements,
                                       Complaints& complaints) {
  ThresholdMaps maps;
  if (told.hard) maps.hard = as_map(told.hard);
  maps.soft = as_map(told.soft);
  maps.soft_grace = graces(told.soft_grace);
  maps.min_reclaim = as_map(told.min_reclaim);
  maps.enforce_node_allocatable = enforcements;
  maps.merge_defaults = told.merge_defaults;

  auto thresholds = build_thresholds(maps);
  if (thresholds) return std::move(*thresholds);
  for (const ThresholdError& error : thresholds.error())
    complaints.push_back(located(told, error));
  return {};
}

}  // namespace headroom::config
