// SPDX-License-Identifier: Apache-2.0
#include "config/reserves_told.h"

#include "judge/allocatable/allocatable_policy.h"

#include <headroom/cpuset.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace headroom::config {
namespace {

using StringMap = std::map<std::string, std::string>;

StringMap map_of(const std::optional<Told>& told) {
  StringMap map;
  if (!told) return map;
  for (const Word& word : told->words)
    map[word.key] = word.text;
  return map;
}

std::optional<Told> told_switch(const Section& document, const std::string& file,
                                std::string_view key) {
  const auto on = document.boolean(key);
  if (!on) return std::nullopt;
  const int line = document.line_of(key);
  return Told{file, line, {Word{"", *on ? "true" : "false", line}}, {}};
}

class Settling {
 public:
  Settling(const ReservesTold& told, const Enforcements& enforcements, Config& config,
           Complaints& complaints)
      : told_(told), enforcements_(enforcements), config_(config), complaints_(complaints) {}

  void settle() {
    AllocatableTold all{.kube_reserved = map_of(told_.kube_reserved),
                        .system_reserved = map_of(told_.system_reserved),
                        .reserved_cpus = reserved_cpus(),
                        .ignore_eviction_threshold = word_of(told_.ignore_eviction) == "true"};
    all.driver = driver();
    if (config_.slices.mode != SlicesMode::kOff) tell_enforcement(all);
    auto policy = allocatable_policy(all);
    if (policy)
      config_.reserved = std::move(*policy);
    else
      for (const SettingError& error : policy.error())
        complain(error);
    place_pods(all);
    config_.system_cgroups.kube_reserved = word_of(told_.kube_reserved_cgroup);
    config_.system_cgroups.system_reserved = word_of(told_.system_reserved_cgroup);
  }

 private:
  void tell_enforcement(AllocatableTold& all) const {
    all.enforce = enforcements_.keys;
    all.kube_reserved_cgroup = word_of(told_.kube_reserved_cgroup);
    all.system_reserved_cgroup = word_of(told_.system_reserved_cgroup);
    all.cgroups_per_qos = word_of(told_.cgroups_per_qos) != "false";
    all.cgroup_root = word_of(told_.cgroup_root);
    all.qos_reserved = map_of(told_.qos_reserved);
  }

  std::optional<std::int64_t> reserved_cpus() {
    const std::string list = word_of(told_.reserved_cpus);
    if (list.empty()) return std::nullopt;
    const auto cpus = CpuSet::parse(list);
    if (cpus) return cpus->size();
    complaints_.push_back(
        complaint_at(told_.reserved_cpus, "", "reservedSystemCPUs: " + cpus.error().what));
    return std::nullopt;
  }

  // Often not in the file: the runtime reports it. Distributions choose systemd, so do we.
  CgroupDriver driver() {
    const std::string word = word_of(told_.cgroup_driver);
    if (word.empty() || word == "systemd") return CgroupDriver::kSystemd;
    if (word != "cgroupfs")
      complaints_.push_back(
          complaint_at(told_.cgroup_driver, "",
                       "cgroupDriver: expected systemd or cgroupfs, found \"" + word + "\""));
    else if (config_.slices.mode == SlicesMode::kEnforce)
      complaints_.push_back(complaint_at(told_.cgroup_driver, "",
                                         "cgroupDriver: headroom.slices.mode enforce sets the "
                                         "values of systemd's slices; expected "
                                         "systemd, or headroom.slices.mode observe"));
    return CgroupDriver::kCgroupfs;
  }

  // headroom.podsCgroup may name any cgroup; but the tree we make is where the kubelet's would be.
  void place_pods(const AllocatableTold& all) {
    const bool systemd = all.driver == CgroupDriver::kSystemd;
    const std::string root = word_of(told_.cgroup_root);
    const std::string usual = pods_cgroup(systemd, root);
    if (!told_.pods_cgroup) {
      config_.pods_cgroup = usual;
      return;
    }
    config_.pods_cgroup = word_of(told_.pods_cgroup);
    if (config_.slices.mode != SlicesMode::kOff && all.cgroups_per_qos &&
        config_.pods_cgroup != usual)
      complaints_.push_back(complaint_at(told_.pods_cgroup, "",
                                         "headroom.podsCgroup: with headroom.slices the pods' "
                                         "cgroup follows from cgroupDriver and "
                                         "cgroupRoot; expected " +
                                             usual + ", or nothing, found \"" +
                                             config_.pods_cgroup + "\""));
  }

  const std::optional<Told>& place_of(std::string_view field) const {
    const std::pair<std::string_view, const std::optional<Told>&> fields[] = {
        {"kubeReserved", told_.kube_reserved},
        {"systemReserved", told_.system_reserved},
        {"qosReserved", told_.qos_reserved},
        {"kubeReservedCgroup", told_.kube_reserved_cgroup},
        {"systemReservedCgroup", told_.system_reserved_cgroup},
        {"reservedSystemCPUs", told_.reserved_cpus},
        {"cgroupRoot", told_.cgroup_root},
        {"enforceNodeAllocatable", enforcements_.told}};
    for (const auto& [name, place] : fields)
      if (name == field && place) return place;
    // What is a default was not written anywhere; that it counts, was.
    return told_.slices_mode;
  }

  void complain(const SettingError& error) {
    const std::string entry = error.key.empty() ? "" : "." + error.key;
    complaints_.push_back(
        complaint_at(place_of(error.field), error.key, error.field + entry + ": " + error.what));
  }

  const ReservesTold& told_;
  const Enforcements& enforcements_;
  Config& config_;
  Complaints& complaints_;
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

void read_reserves(const Section& document, const std::string& file, ReservesTold& told) {
  told.kube_reserved = told_map(document, file, "kubeReserved");
  told.system_reserved = told_map(document, file, "systemReserved");
  told.qos_reserved = told_map(document, file, "qosReserved");
  told.kube_reserved_cgroup = told_word(document, file, "kubeReservedCgroup");
  told.system_reserved_cgroup = told_word(document, file, "systemReservedCgroup");
  told.reserved_cpus = told_word(document, file, "reservedSystemCPUs");
  told.cgroup_root = told_word(document, file, "cgroupRoot");
  told.cgroup_driver = told_word(document, file, "cgroupDriver");
  told.cgroups_per_qos = told_switch(document, file, "cgroupsPerQOS");
}

void settle_reserves(const ReservesTold& told, const Enforcements& enforcements, Config& config,
                     Complaints& complaints) {
  Settling(told, enforcements, config, complaints).settle();
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
