// SPDX-License-Identifier: Apache-2.0
#include "config/sections/section_settings.h"
#include "judge/allocatable/allocatable_policy.h"

#include <headroom/cpuset.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace headroom::config {
namespace {

using StringMap = std::map<std::string, std::string>;

StringMap map_of(const std::optional<LocatedValue>& settings) {
  StringMap map;
  if (!settings) return map;
  for (const LocatedText& word : settings->strings)
    map[word.key] = word.text;
  return map;
}

std::optional<LocatedValue> read_located_bool(const Section& document, const std::string& file,
                                              std::string_view key) {
  const auto on = document.boolean(key);
  if (!on) return std::nullopt;
  const int line = document.line_of(key);
  return LocatedValue{file, line, {LocatedText{"", *on ? "true" : "false", line}}, {}};
}

class Resolver {
 public:
  Resolver(const ReservedSettings& settings, const Enforcements& enforcements, Config& config,
           Diagnostics& diagnostics)
      : settings_(settings),
        enforcements_(enforcements),
        config_(config),
        complaints_(diagnostics) {}

  void resolve() {
    AllocatableConfig all{
        .kube_reserved = map_of(settings_.kube_reserved),
        .system_reserved = map_of(settings_.system_reserved),
        .reserved_cpus = reserved_cpus(),
        .ignore_eviction_threshold = last_text(settings_.ignore_eviction) == "true"};
    all.driver = driver();
    if (config_.slices.mode != SlicesMode::kOff) add_enforcement(all);
    auto policy = allocatable_policy(all);
    if (policy)
      config_.reserved = std::move(*policy);
    else
      for (const SettingError& error : policy.error())
        add_error(error);
    set_pods_cgroup(all);
    config_.system_cgroups.kube_reserved = last_text(settings_.kube_reserved_cgroup);
    config_.system_cgroups.system_reserved = last_text(settings_.system_reserved_cgroup);
  }

 private:
  void add_enforcement(AllocatableConfig& all) const {
    all.enforce = enforcements_.keys;
    all.kube_reserved_cgroup = last_text(settings_.kube_reserved_cgroup);
    all.system_reserved_cgroup = last_text(settings_.system_reserved_cgroup);
    all.cgroups_per_qos = last_text(settings_.cgroups_per_qos) != "false";
    all.cgroup_root = last_text(settings_.cgroup_root);
    all.qos_reserved = map_of(settings_.qos_reserved);
  }

  std::optional<std::int64_t> reserved_cpus() {
    const std::string list = last_text(settings_.reserved_cpus);
    if (list.empty()) return std::nullopt;
    const auto cpus = CpuSet::parse(list);
    if (cpus) return cpus->size();
    complaints_.push_back(
        make_complaint(settings_.reserved_cpus, "", "reservedSystemCPUs: " + cpus.error().what));
    return std::nullopt;
  }

  // Often not in the file: the runtime reports it. Distributions choose systemd, so do we.
  CgroupDriver driver() {
    const std::string word = last_text(settings_.cgroup_driver);
    if (word.empty() || word == "systemd") return CgroupDriver::kSystemd;
    if (word != "cgroupfs")
      complaints_.push_back(
          make_complaint(settings_.cgroup_driver, "",
                         "cgroupDriver: expected systemd or cgroupfs, found \"" + word + "\""));
    else if (config_.slices.mode == SlicesMode::kEnforce)
      complaints_.push_back(make_complaint(settings_.cgroup_driver, "",
                                           "cgroupDriver: headroom.slices.mode enforce sets the "
                                           "values of systemd's slices; expected "
                                           "systemd, or headroom.slices.mode observe"));
    return CgroupDriver::kCgroupfs;
  }

  // headroom.podsCgroup may name any cgroup; but the tree we make is where the kubelet's would be.
  void set_pods_cgroup(const AllocatableConfig& all) {
    const bool systemd = all.driver == CgroupDriver::kSystemd;
    const std::string root = last_text(settings_.cgroup_root);
    const std::string default_path = pods_cgroup(systemd, root);
    if (!settings_.pods_cgroup) {
      config_.pods_cgroup = default_path;
      return;
    }
    config_.pods_cgroup = last_text(settings_.pods_cgroup);
    if (config_.slices.mode != SlicesMode::kOff && all.cgroups_per_qos &&
        config_.pods_cgroup != default_path)
      complaints_.push_back(make_complaint(settings_.pods_cgroup, "",
                                           "headroom.podsCgroup: with headroom.slices the pods' "
                                           "cgroup follows from cgroupDriver and "
                                           "cgroupRoot; expected " +
                                               default_path + ", or nothing, found \"" +
                                               config_.pods_cgroup + "\""));
  }

  const std::optional<LocatedValue>& setting_for_field(std::string_view field) const {
    const std::pair<std::string_view, const std::optional<LocatedValue>&> fields[] = {
        {"kubeReserved", settings_.kube_reserved},
        {"systemReserved", settings_.system_reserved},
        {"qosReserved", settings_.qos_reserved},
        {"kubeReservedCgroup", settings_.kube_reserved_cgroup},
        {"systemReservedCgroup", settings_.system_reserved_cgroup},
        {"reservedSystemCPUs", settings_.reserved_cpus},
        {"cgroupRoot", settings_.cgroup_root},
        {"enforceNodeAllocatable", enforcements_.settings}};
    for (const auto& [name, setting] : fields)
      if (name == field && setting) return setting;
    // What is a default was not written anywhere; that it counts, was.
    return settings_.slices_mode;
  }

  void add_error(const SettingError& error) {
    const std::string entry = error.key.empty() ? "" : "." + error.key;
    complaints_.push_back(make_complaint(setting_for_field(error.field), error.key,
                                         error.field + entry + ": " + error.what));
  }

  const ReservedSettings& settings_;
  const Enforcements& enforcements_;
  Config& config_;
  Diagnostics& complaints_;
};

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

}  // namespace

void read_reserved_settings(const Section& document, const std::string& file,
                            ReservedSettings& settings) {
  settings.kube_reserved = read_located_map(document, file, "kubeReserved");
  settings.system_reserved = read_located_map(document, file, "systemReserved");
  settings.qos_reserved = read_located_map(document, file, "qosReserved");
  settings.kube_reserved_cgroup = read_located_string(document, file, "kubeReservedCgroup");
  settings.system_reserved_cgroup = read_located_string(document, file, "systemReservedCgroup");
  settings.reserved_cpus = read_located_string(document, file, "reservedSystemCPUs");
  settings.cgroup_root = read_located_string(document, file, "cgroupRoot");
  settings.cgroup_driver = read_located_string(document, file, "cgroupDriver");
  settings.cgroups_per_qos = read_located_bool(document, file, "cgroupsPerQOS");
}

void resolve_reserved_settings(const ReservedSettings& settings, const Enforcements& enforcements,
                               Config& config, Diagnostics& diagnostics) {
  Resolver(settings, enforcements, config, diagnostics).resolve();
}

std::string pods_cgroup(bool systemd_driver, std::string_view cgroup_root) {
  std::vector<std::string> parts = components(cgroup_root);
  parts.push_back("kubepods");
  std::string path, stem;
  for (std::string& part : parts) {
    if (!path.empty()) path += "/";
    if (!systemd_driver) {
      path += part;
      continue;
    }
    // A slice's name spells out its parents, so a dash in a name becomes an underscore.
    std::replace(part.begin(), part.end(), '-', '_');
    stem += (stem.empty() ? "" : "-") + part;
    path += stem + ".slice";
  }
  return path;
}

}  // namespace headroom::config
