// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/unversioned_state.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

Instant instant(const json& ns) {
  return Instant(Duration(ns.get<std::int64_t>()));
}

Taint taint_from(const json& from) {
  const auto effect = taint_effect_named(from.at("effect").get<std::string>());
  return {from.at("key"), from.at("value"), effect.value_or(TaintEffect::kNoExecute)};
}

Reason reason_from(const json& from) {
  const auto signal = signal_named(from.at("signal").get<std::string>());
  Reason reason;
  reason.signal = signal.value_or(Signal::kMemoryAvailable);
  reason.hard = from.at("hard");
  reason.threshold = from.at("threshold");
  reason.available = from.at("available");
  reason.capacity = from.at("capacity");
  reason.sampled_at = instant(from.at("sampled_at"));
  reason.first_crossed = instant(from.at("first_crossed"));
  reason.last_clear = instant(from.at("last_clear"));
  reason.limit = static_cast<StorageLimit>(from.value("limit", 0));
  reason.used = from.value("used", std::int64_t{0});
  if (from.value("stuck", false)) reason.cause = Cause::kStuck;
  if (from.contains("taint")) {
    reason.cause = Cause::kTaint;
    reason.taint = std::make_shared<const Taint>(taint_from(from.at("taint")));
  }
  // Release 0.1 did not write the index of the volume or container: this is one that no pod has.
  if (reason.limit != StorageLimit::kNone) reason.subject = UINT32_MAX;
  return reason;
}

std::vector<Volume> volumes_from(const json& names) {
  std::vector<Volume> volumes;
  for (const json& name : names) {
    Volume volume;
    volume.name = name.get<std::string>();
    volume.kind = Volume::Kind::kEmptyDir;
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

Part part_from(const json& from) {
  Part part;
  part.unit = eviction_unit_named(from.at("unit").get<std::string>()).value_or(EvictionUnit::kPod);
  part.cgroup = CgroupId{from.at("cgroup").get<std::uint64_t>()};
  part.process = {.pid = from.at("pid"), .started = from.at("started")};
  part.group = from.at("group");
  const std::string comm = from.at("comm");
  comm.copy(part.comm.data(), part.comm.size() - 1);
  return part;
}

Victim victim_from(const json& from) {
  auto pod = std::make_shared<Pod>();
  pod->uid = from.at("uid");
  pod->name = from.at("name");
  pod->pod_namespace = from.at("namespace");
  pod->priority = from.at("priority");
  pod->volumes = volumes_from(from.value("empty_dirs", json::array()));
  Victim victim;
  victim.pod = std::move(pod);
  victim.cgroup = CgroupId{from.at("cgroup").get<std::uint64_t>()};
  victim.phase = static_cast<Victim::Phase>(from.at("phase").get<int>());
  victim.terminated_at = instant(from.at("terminated_at"));
  victim.killed_at = instant(from.at("killed_at"));
  victim.deadline = instant(from.at("deadline"));
  victim.sigterm_due = instant(from.value("step_due", json(0)));
  victim.reason = reason_from(from.at("reason"));
  victim.memory_request = Bytes{from.at("request").get<std::int64_t>()};
  if (from.contains("part")) victim.part = part_from(from.at("part"));
  if (from.contains("held")) victim.held = Bytes{from.at("held").get<std::int64_t>()};
  return victim;
}

CgroupId cgroup_from(const json& from, const char* key) {
  return CgroupId{from.at(key).get<std::uint64_t>()};
}

}  // namespace

bool decode_unversioned(const json& whole, std::vector<Victim>& victims) {
  for (const json& entry : whole.at("victims")) {
    victims.push_back(victim_from(entry));
    const Victim& victim = victims.back();
    if (victim.phase > Victim::Phase::kRemoving || victim.reason.limit > StorageLimit::kContainer)
      return false;
  }
  return true;
}

bool decode_unversioned(const json& whole, std::vector<TaintTimer>& timers) {
  for (const json& entry : whole.at("timers"))
    timers.push_back({.cgroup = cgroup_from(entry, "cgroup"),
                      .started = instant(entry.at("started")),
                      .length = Duration(entry.at("length").get<std::int64_t>())});
  return true;
}

bool decode_unversioned(const json& whole, state::SavedTaints& taints) {
  for (const json& entry : whole.at("configured"))
    taints.configured.push_back(taint_from(entry));
  for (const json& entry : whole.at("taints"))
    taints.active.push_back(taint_from(entry));
  return true;
}

}  // namespace headroom::daemon
