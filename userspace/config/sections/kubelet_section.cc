// SPDX-License-Identifier: Apache-2.0
#include "config/keys.h"
#include "config/kubelet_keys.h"
#include "config/sections/sections.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace headroom::config {
namespace {

constexpr std::string_view kApiVersion = "kubelet.config.k8s.io/v1beta1";
constexpr std::string_view kKind = "KubeletConfiguration";

void require_constant(const Section& document, std::string_view key, std::string_view wanted) {
  const auto found = document.string(key);
  if (found && *found != wanted)
    document.add_error(key, "expected " + std::string(wanted) + ", found \"" + *found + "\"");
  if (!document.has(key))
    document.add_error_at(document.line(),
                          "missing " + std::string(key) + ": expected " + std::string(wanted));
}

// The keys of the top level that headroom reads: the first part of each path.
std::vector<std::string_view> used_keys() {
  std::vector<std::string_view> used{"apiVersion", "kind"};
  for (const KeyDescription& key : all_keys()) {
    const std::string_view top = key.path.substr(0, key.path.find('.'));
    if (used.back() != top) used.push_back(top);
  }
  return used;
}

// A kubelet of another version has other keys: unknown ones are warnings.
void report_unknown_keys(const Section& document, Diagnostics& warnings) {
  const auto headroom_names = headroom_keys();
  std::vector<std::string_view> known(kubelet_keys().begin(), kubelet_keys().end());
  known.push_back("headroom");
  for (const yaml::Entry& entry : document.entries()) {
    const bool misplaced =
        !is_kubelet_key(entry.key) &&
        std::find(headroom_names.begin(), headroom_names.end(), entry.key) != headroom_names.end();
    if (!misplaced) continue;
    document.add_error_at(entry.line, "unknown key " + entry.key + ": it belongs under headroom:");
    known.push_back(entry.key);
  }
  document.warn_of_unknown_keys(known, used_keys(), warnings);
}

// A map that is none holds no grace period for anyone: all are unread.
LocatedValue invalid_grace_periods(const Section& document, const std::string& file,
                                   const std::optional<LocatedValue>& soft) {
  LocatedValue configured{file, document.line_of("evictionSoftGracePeriod"), {}, {}};
  if (soft)
    for (const LocatedText& word : soft->strings)
      configured.unreadable_keys.push_back(word.key);
  return configured;
}

void read_eviction(const Section& document, const std::string& file, Config& config,
                   EvictionSettings& eviction) {
  eviction.hard = read_located_map(document, file, "evictionHard");
  eviction.soft = read_located_map(document, file, "evictionSoft");
  eviction.soft_grace = read_located_map(document, file, "evictionSoftGracePeriod");
  if (!eviction.soft_grace && document.has("evictionSoftGracePeriod"))
    eviction.soft_grace = invalid_grace_periods(document, file, eviction.soft);
  eviction.min_reclaim = read_located_map(document, file, "evictionMinimumReclaim");
  if (const auto merge = document.boolean("mergeDefaultEvictionSettings"))
    eviction.merge_defaults = *merge;
  eviction.enforce_node_allocatable = read_located_list(document, file, "enforceNodeAllocatable");

  if (const auto isolation = document.boolean("localStorageCapacityIsolation"))
    config.policy.local_storage_isolation = *isolation;

  using Int32 = std::numeric_limits<std::int32_t>;
  if (const auto limit = document.integer("evictionMaxPodGracePeriod", Int32::min(), Int32::max()))
    config.policy.max_pod_grace = std::chrono::seconds(*limit);
  if (const auto period = document.duration("evictionPressureTransitionPeriod")) {
    if (*period < Duration::zero())
      document.add_error("evictionPressureTransitionPeriod", "must not be negative");
    // The kubelet does not distinguish zero from unset.
    else if (*period > Duration::zero())
      config.policy.pressure_transition = *period;
  }
}

void read_cgroups(const Section& document, Config& config) {
  auto& system = config.system_cgroups;
  system.kubelet = document.string("kubeletCgroups").value_or("");
  system.misc = document.string("systemCgroups").value_or("");
}

}  // namespace

void read_kubelet(const Section& document, const std::string& file, Config& config,
                  EvictionSettings& eviction, ReservedSettings& reserves, PodSizingSettings& sizing,
                  Diagnostics& warnings) {
  require_constant(document, "apiVersion", kApiVersion);
  require_constant(document, "kind", kKind);
  report_unknown_keys(document, warnings);
  read_eviction(document, file, config, eviction);
  read_cgroups(document, config);
  read_reserved_settings(document, file, reserves);
  read_sizing(document, file, sizing, warnings);
  read_node(document, config, warnings);
}

}  // namespace headroom::config
