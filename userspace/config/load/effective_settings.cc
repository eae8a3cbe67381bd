// SPDX-License-Identifier: Apache-2.0
#include "config/load/effective_settings.h"

#include "base/json_text.h"
#include "config/flags/command_line.h"
#include "config/keys.h"
#include "config/sections/sections.h"
#include "judge/admission/taints.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

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

// The settings with which headroomd would write what the kubelet also writes.
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
                          "\"/var/lib/kubelet/memory_manager_state\""}};
  for (const CoexistenceOverride& each : kCoexistenceOverrides) {
    const auto setting = std::ranges::find_if(
        settings, [&](const ConfigSetting& one) { return one.path == each.path; });
    if (setting == settings.end() || find_key(document, each.section, each.key)) continue;
    if (each.key == "memoryStateFile" && config.cpus.mode != CpusMode::kObserve) continue;
    setting->value = each.value;
    setting->origin = "beside a kubelet";
  }
}

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  return to_json_text(json);
}

// A scalar as the type wants it; what cannot be read stands as it was written, and was complained
// of.
Json scalar(const yaml::Node& node) {
  if (is_number(node)) {
    const Json number = Json::parse(node.text, nullptr, false);
    if (number.is_number()) return number;
  }
  if (is_boolean(node)) {
    const char first = static_cast<char>(node.text[0] | 0x20);
    return first == 'y' || first == 't' || node.text == "on" || node.text == "On" ||
           node.text == "ON";
  }
  return node.text;
}

Json json_of(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::Node::Kind::kNull:
      return nullptr;
    case yaml::Node::Kind::kScalar:
      return scalar(node);
    case yaml::Node::Kind::kSequence: {
      Json list = Json::array();
      for (const yaml::Node& item : node.items)
        list.push_back(json_of(item));
      return list;
    }
    case yaml::Node::Kind::kMap: {
      Json map = Json::object();
      for (const yaml::Entry& entry : node.entries)
        map[entry.key] = json_of(entry.value);
      return map;
    }
  }
  return nullptr;
}

// The entry at "headroom.disk.nodefs"; null: not there.
const yaml::Entry* find_entry(const yaml::Node& document, std::string_view path) {
  const yaml::Node* node = &document;
  for (;;) {
    if (!node->is_map()) return nullptr;
    const std::size_t dot = path.find('.');
    const yaml::Entry* entry = yaml::find(*node, path.substr(0, dot));
    if (!entry || dot == std::string_view::npos) return entry;
    node = &entry->value;
    path.remove_prefix(dot + 1);
  }
}

class SettingsCollector {
 public:
  SettingsCollector(const yaml::Node& document, const CommandLine& line,
                    const EvictionSettings& eviction, const ReservedSettings& reserves,
                    const std::function<std::string(int)>& location)
      : document_(document),
        line_(line),
        eviction_(eviction),
        reserves_(reserves),
        location_of_(location) {}

  ConfigSettings collect() {
    for (const KeyDescription& key : all_keys())
      if (!add_from_flag(key) && !add_from_file(key)) add_default(key);
    return std::move(settings_);
  }

 private:
  static bool has_entries(const KeyDescription& key) {
    return key.type == ConfigKeyType::kStringMap || key.type == ConfigKeyType::kBoolMap;
  }

  void add(const KeyDescription& key, std::string entry, std::string value, std::string origin) {
    settings_.push_back(
        {std::string(key.path), std::move(entry), std::move(value), std::move(origin)});
  }

  // A map's every entry has an origin of its own; an empty map is one value.
  void add_default(const KeyDescription& key) {
    const Json value = Json::parse(key.value);
    if (!has_entries(key) || value.empty()) return add(key, "", std::string(key.value), "default");
    for (const auto& [entry, amount] : value.items())
      add(key, entry, text_of(amount), "default");
  }

  bool add_from_file(const KeyDescription& key) {
    const yaml::Entry* configured = find_entry(document_, key.path);
    if (!configured) return false;
    if (key.type == ConfigKeyType::kEnum) {
      // "off" is a boolean to YAML.
      add(key, "", text_of(configured->value.text), location_of_(configured->line));
    } else if (!has_entries(key) || configured->value.entries.empty()) {
      add(key, "", text_of(json_of(configured->value)), location_of_(configured->line));
    } else {
      for (const yaml::Entry& entry : configured->value.entries)
        add(key, entry.key, text_of(json_of(entry.value)), location_of_(entry.line));
    }
    if (key.path == "evictionHard" && eviction_.merge_defaults) merge_defaults(key);
    return true;
  }

  void merge_defaults(const KeyDescription& key) {
    const auto configured = [&](const std::string& entry) {
      return std::any_of(settings_.begin(), settings_.end(), [&](const ConfigSetting& setting) {
        return setting.path == key.path && setting.entry == entry;
      });
    };
    const Json defaults = Json::parse(key.value);
    for (const auto& [entry, amount] : defaults.items())
      if (!configured(entry)) add(key, entry, text_of(amount), "default");
  }

  bool add_from_flag(const KeyDescription& key) {
    if (const std::optional<LocatedValue>* configured = find_flag_value(key.path))
      return add_located(key, **configured);
    if (key.path == "cpuManagerPolicyOptions" && !line_.cpu_manager_policy_options.empty())
      return add_located(
          key, parse_pairs("--cpu-manager-policy-options", line_.cpu_manager_policy_options));
    if (key.path == "topologyManagerPolicyOptions" &&
        !line_.topology_manager_policy_options.empty())
      return add_located(key, parse_pairs("--topology-manager-policy-options",
                                          line_.topology_manager_policy_options));
    if (key.path == "headroom.nodeLabels" && !line_.node_labels.empty())
      return add_located(key, parse_pairs("--node-labels", line_.node_labels));
    if (key.path == "registerWithTaints" && !line_.register_with_taints.empty())
      return add_taints(key);
    if (key.path == "reservedMemory" && !line_.reserved_memory.empty())
      return add_reserved_memory(key);
    for (const auto& [path, flag, values] :
         {std::tuple{"headroom.nodeName", "--hostname-override", &line_.hostname_override},
          std::tuple{"maxPods", "--max-pods", &line_.max_pods},
          std::tuple{"podsPerCore", "--pods-per-core", &line_.pods_per_core},
          std::tuple{"cpuCFSQuota", "--cpu-cfs-quota", &line_.cpu_cfs_quota},
          std::tuple{"cpuCFSQuotaPeriod", "--cpu-cfs-quota-period", &line_.cpu_cfs_quota_period},
          std::tuple{"podPidsLimit", "--pod-max-pids", &line_.pod_max_pids},
          std::tuple{"localStorageCapacityIsolation", "--local-storage-capacity-isolation",
                     &line_.local_storage_isolation},
          std::tuple{"headroom.mode", "--mode", &line_.mode},
          std::tuple{"headroom.listen", "--listen", &line_.listen},
          std::tuple{"headroom.kubernetes.metrics.listen", "--metrics-listen",
                     &line_.metrics_listen},
          std::tuple{"evictionMaxPodGracePeriod", "--eviction-max-pod-grace-period",
                     &line_.eviction_max_pod_grace_period},
          std::tuple{"evictionPressureTransitionPeriod", "--eviction-pressure-transition-period",
                     &line_.eviction_pressure_transition_period},
          std::tuple{"cpuManagerPolicy", "--cpu-manager-policy", &line_.cpu_manager_policy},
          std::tuple{"cpuManagerReconcilePeriod", "--cpu-manager-reconcile-period",
                     &line_.cpu_manager_reconcile_period},
          std::tuple{"memoryManagerPolicy", "--memory-manager-policy",
                     &line_.memory_manager_policy},
          std::tuple{"topologyManagerPolicy", "--topology-manager-policy",
                     &line_.topology_manager_policy},
          std::tuple{"topologyManagerScope", "--topology-manager-scope",
                     &line_.topology_manager_scope}}) {
      if (key.path != path || values->empty()) continue;
      const std::string& text = values->back();
      const bool bare = key.type == ConfigKeyType::kInteger || key.type == ConfigKeyType::kBoolean;
      add(key, "", bare ? text : text_of(text), flag);
      return true;
    }
    return false;
  }

  // As a KubeletConfiguration has them; what is no taint has been complained of.
  bool add_taints(const KeyDescription& key) {
    std::optional<LocatedValue> configured;
    apply_list_flag({line_.register_with_taints.back()}, "--register-with-taints", configured);
    Json list = Json::array();
    for (const LocatedText& word : configured->strings)
      if (const auto edit = parse_taint_edit(word.text); edit && edit->effect)
        list.push_back(
            {{"key", edit->key}, {"value", edit->value}, {"effect", name(*edit->effect)}});
    add(key, "", text_of(list), "--register-with-taints");
    return true;
  }

  bool add_reserved_memory(const KeyDescription& key) {
    std::vector<std::string> errors;
    Json list = Json::array();
    for (const auto& [node, amounts] : parse_reserved_memory(line_.reserved_memory, errors)) {
      Json limits = Json::object();
      for (const auto& [resource, amount] : amounts)
        limits[resource] = amount.canonical();
      list.push_back({{"numaNode", node}, {"limits", std::move(limits)}});
    }
    add(key, "", text_of(list), "--reserved-memory");
    return true;
  }

  // "a=b,c=d"; what is no pair has been complained of.
  static LocatedValue parse_pairs(std::string flag, const CommandLine::FlagValues& values) {
    LocatedValue configured{std::move(flag), 0, {}, {}};
    for (const std::string& value : values)
      for (std::string_view rest = value; !rest.empty();) {
        const std::string_view pair = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
        if (const std::size_t sign = pair.find('='); sign != std::string_view::npos)
          configured.strings.push_back(
              {std::string(pair.substr(0, sign)), std::string(pair.substr(sign + 1)), 0});
      }
    return configured;
  }

  // Of what is gathered before it is judged: a flag replaces it as a whole.
  const std::optional<LocatedValue>* find_flag_value(std::string_view path) const {
    for (const auto& [key, configured] :
         {std::pair{"evictionHard", &eviction_.hard}, std::pair{"evictionSoft", &eviction_.soft},
          std::pair{"evictionSoftGracePeriod", &eviction_.soft_grace},
          std::pair{"evictionMinimumReclaim", &eviction_.min_reclaim},
          std::pair{"enforceNodeAllocatable", &eviction_.enforce_node_allocatable},
          std::pair{"kubeReserved", &reserves_.kube_reserved},
          std::pair{"systemReserved", &reserves_.system_reserved},
          std::pair{"qosReserved", &reserves_.qos_reserved},
          std::pair{"kubeReservedCgroup", &reserves_.kube_reserved_cgroup},
          std::pair{"systemReservedCgroup", &reserves_.system_reserved_cgroup},
          std::pair{"reservedSystemCPUs", &reserves_.reserved_cpus},
          std::pair{"cgroupRoot", &reserves_.cgroup_root},
          std::pair{"cgroupDriver", &reserves_.cgroup_driver},
          std::pair{"cgroupsPerQOS", &reserves_.cgroups_per_qos}})
      if (path == key && *configured && (*configured)->file.starts_with("--")) return configured;
    return nullptr;
  }

  bool add_located(const KeyDescription& key, const LocatedValue& configured) {
    if (key.type == ConfigKeyType::kStrings) {
      add(key, "", text_of(strings_json(configured)), configured.file);
    } else if (key.type != ConfigKeyType::kStringMap) {
      const std::string word = last_text(configured);
      add(key, "", key.type == ConfigKeyType::kBoolean ? word : text_of(word), configured.file);
    } else if (configured.strings.empty()) {
      add(key, "", "{}", configured.file);
    } else {
      for (const LocatedText& word : configured.strings)
        add(key, word.key, text_of(word.text), configured.file);
    }
    return true;
  }

  static Json strings_json(const LocatedValue& configured) {
    Json list = Json::array();
    for (const LocatedText& word : configured.strings)
      list.push_back(word.text);
    return list;
  }

  const yaml::Node& document_;
  const CommandLine& line_;
  const EvictionSettings& eviction_;
  const ReservedSettings& reserves_;
  const std::function<std::string(int)>& location_of_;
  ConfigSettings settings_;
};

}  // namespace

ConfigSettings effective_settings(const yaml::Node& document, const CommandLine& line,
                                  const EvictionSettings& eviction,
                                  const ReservedSettings& reserves,
                                  const std::function<std::string(int)>& location) {
  return SettingsCollector(document, line, eviction, reserves, location).collect();
}

ConfigSettings default_settings() {
  return effective_settings({}, {}, {}, {}, [](int) { return std::string(); });
}

}  // namespace headroom::config
