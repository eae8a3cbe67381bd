// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/system_use_reader.h"

#include "daemon/config/system_containers.h"

#include <algorithm>
#include <array>

namespace headroom::daemon {
namespace {

using recording::SystemRole;

// Services that are a kubelet and a container runtime in one.
constexpr std::array kDistributions{"k3s",
                                    "k3s-agent",
                                    "rke2-server",
                                    "rke2-agent",
                                    "k0sworker",
                                    "k0scontroller",
                                    "snap.microk8s.daemon-kubelite"};

std::unordered_map<std::string, SystemRole> roles_of(const config::Config& config) {
  std::unordered_map<std::string, SystemRole> roles;
  for (const char* service : kDistributions)
    roles.emplace(std::string("/system.slice/") + service + ".service", SystemRole::kKube);
  for (const report::SystemContainer& container : system_containers(config)) {
    if (container.name == "misc") continue;  // a child of the root, which is kept anyway
    for (const std::string& path : container.paths)
      roles[path] = container.name == "pods" ? SystemRole::kPods : SystemRole::kKube;
  }
  return roles;
}

recording::ReservedAmounts amounts_of(const Amounts& reserved) {
  const auto count = [](const auto& value) {
    return value ? std::optional(value->count) : std::nullopt;
  };
  return {.milli_cpu = count(reserved.cpu),
          .memory = count(reserved.memory),
          .ephemeral_storage = count(reserved.ephemeral_storage),
          .pids = count(reserved.pids)};
}

}  // namespace

SystemUseReader::SystemUseReader(const report::CgroupNames& names, const config::Config& config)
    : names_(names) {
  reconfigure(config);
}

void SystemUseReader::reconfigure(const config::Config& config) {
  roles_ = roles_of(config);
  use_.reserves = {.kube = amounts_of(config.reserved.kube.amounts),
                   .system = amounts_of(config.reserved.system.amounts)};
  order_.reset();
}

// Ids and not only the order: without a new order a record could still be missing.
bool SystemUseReader::is_current(std::span<const hr_record> records, std::uint32_t order) const {
  return order_ == order && std::ranges::all_of(places_, [&](const Place& place) {
           return place.index < records.size() && records[place.index].id == place.id.value;
         });
}

void SystemUseReader::find(std::span<const hr_record> records) {
  places_.clear();
  use_.cgroups.clear();
  // Parents come before their children.
  const std::uint64_t root =
      !records.empty() && records.front().parent_id == 0 ? records.front().id : 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const CgroupId id{records[i].id};
    std::string path(names_.path_of(id));
    if (path.empty()) continue;  // it is gone
    const auto found = roles_.find(path);
    SystemRole role = SystemRole::kOther;
    if (id.value == root)
      role = SystemRole::kNode;
    else if (found != roles_.end())
      role = found->second;
    else if (root == 0 || records[i].parent_id != root)
      continue;
    places_.push_back({.index = i, .id = id});
    use_.cgroups.push_back({.id = id, .path = std::move(path), .role = role});
  }
}

const recording::SystemUse* SystemUseReader::read(const Snapshot& snapshot) {
  if (!snapshot.cgroups || (last_ && snapshot.at - *last_ < kPeriod)) return nullptr;
  last_ = use_.at = snapshot.at;
  const std::span<const hr_record> records = *snapshot.cgroups;
  if (!is_current(records, snapshot.changes.order)) find(records);
  order_ = snapshot.changes.order;
  const auto& unaccounted = snapshot.unaccounted_memory;
  use_.unaccounted_memory = unaccounted ? std::optional(unaccounted->count) : std::nullopt;
  for (std::size_t i = 0; i < places_.size(); ++i)
    use_.cgroups[i].record = records[places_[i].index];
  return &use_;
}

}  // namespace headroom::daemon
