// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/victims_file.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::int64_t ns(Instant at) {
  return at.time_since_epoch().count();
}
Instant instant(const json& ns) {
  return Instant(Duration(ns.get<std::int64_t>()));
}

json to_json(const Reason& reason) {
  json entry{{"signal", name(reason.signal)},
             {"hard", reason.hard},
             {"threshold", reason.threshold},
             {"available", reason.available},
             {"capacity", reason.capacity},
             {"sampled_at", ns(reason.sampled_at)},
             {"first_crossed", ns(reason.first_crossed)},
             {"last_clear", ns(reason.last_clear)},
             {"limit", static_cast<int>(reason.limit)},
             {"used", reason.used}};
  if (reason.cause == Cause::kStuck) entry["stuck"] = true;
  if (reason.cause == Cause::kTaint)
    entry["taint"] = {{"key", reason.taint->key},
                      {"value", reason.taint->value},
                      {"effect", name(reason.taint->effect)}};
  return entry;
}

std::shared_ptr<const Taint> taint_from(const json& from) {
  const auto effect = taint_effect_named(from.at("effect").get<std::string>());
  return std::make_shared<const Taint>(
      Taint{from.at("key"), from.at("value"), effect.value_or(TaintEffect::kNoExecute)});
}

Reason reason_from(const json& from) {
  const auto signal = signal_named(from.at("signal").get<std::string>());
  const bool taint = from.contains("taint");
  const bool stuck = from.value("stuck", false);
  return Reason{.cause = taint   ? Cause::kTaint
                         : stuck ? Cause::kStuck
                                 : Cause::kThreshold,
                .signal = signal.value_or(Signal::kMemoryAvailable),
                .hard = from.at("hard"),
                .threshold = from.at("threshold"),
                .available = from.at("available"),
                .capacity = from.at("capacity"),
                .sampled_at = instant(from.at("sampled_at")),
                .first_crossed = instant(from.at("first_crossed")),
                .last_clear = instant(from.at("last_clear")),
                .taint = taint ? taint_from(from.at("taint")) : nullptr,
                .limit = static_cast<StorageLimit>(from.value("limit", 0)),
                .used = from.value("used", std::int64_t{0})};
}

// Of its volumes those that go with the pod.
json empty_dirs(const Pod& pod) {
  json names = json::array();
  for (const Volume& volume : pod.volumes)
    if (volume.kind == Volume::Kind::kEmptyDir && !volume.in_memory) names.push_back(volume.name);
  return names;
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

// The actions of the earlier daemon's threads ended with it. Pre-stop commands go on by themselves:
// their deadline stays. A removal starts again.
Victim::Phase phase_after_restart(Victim::Phase phase) {
  return phase == Victim::Phase::kRemoving ? Victim::Phase::kKilled : phase;
}

json to_json(const Part& part) {
  return {{"unit", name(part.unit)},  {"cgroup", part.cgroup.value},
          {"pid", part.process.pid},  {"started", part.process.started},
          {"comm", part.comm.data()}, {"group", part.group}};
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

json to_json(const Victim& victim) {
  json entry{{"uid", victim.pod->uid},
             {"name", victim.pod->name},
             {"namespace", victim.pod->pod_namespace},
             {"priority", victim.pod->priority},
             {"cgroup", victim.cgroup.value},
             {"request", victim.memory_request.count},
             {"phase", static_cast<int>(victim.phase)},
             {"terminated_at", ns(victim.terminated_at)},
             {"killed_at", ns(victim.killed_at)},
             {"deadline", ns(victim.deadline)},
             {"step_due", ns(victim.sigterm_due)},
             {"empty_dirs", empty_dirs(*victim.pod)},
             {"reason", to_json(victim.reason)}};
  if (!victim.part.whole()) entry["part"] = to_json(victim.part);
  if (victim.held) entry["held"] = victim.held->count;
  return entry;
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
  victim.phase = phase_after_restart(static_cast<Victim::Phase>(from.at("phase").get<int>()));
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

// What a pretended victim stands for ends with the daemon that pretended.
bool is_persistent(const Victim& victim) {
  return victim.phase != Victim::Phase::kDryRun;
}

}  // namespace

VictimsFile::VictimsFile(const fs::path& state_dir)
    : path_(state_dir / "victims.json"), boot_id_(read_boot_id()) {}

bool VictimsFile::unchanged(const std::vector<Victim>& victims) const {
  std::size_t i = 0;
  for (const Victim& victim : victims) {
    if (!is_persistent(victim)) continue;
    if (i == saved_.size() || saved_[i] != std::pair(victim.cgroup, victim.phase)) return false;
    ++i;
  }
  return i == saved_.size();
}

Result<> VictimsFile::save(const std::vector<Victim>& victims) {
  if (unchanged(victims)) return {};
  json list = json::array();
  std::vector<std::pair<CgroupId, Victim::Phase>> saved;
  for (const Victim& victim : victims) {
    if (!is_persistent(victim)) continue;
    list.push_back(to_json(victim));
    saved.emplace_back(victim.cgroup, victim.phase);
  }
  const json whole{{"boot_id", boot_id_}, {"victims", std::move(list)}};
  if (auto written =
          write_atomically(path_, whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
      !written)
    return written;
  saved_ = std::move(saved);
  return {};
}

Result<std::vector<Victim>> VictimsFile::load() {
  std::ifstream file(path_);
  if (!file) return std::vector<Victim>{};
  std::vector<Victim> victims;
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return victims;
    for (const json& entry : whole.at("victims"))
      victims.push_back(victim_from(entry));
  } catch (const json::exception& damaged) {
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  for (const Victim& victim : victims)
    saved_.emplace_back(victim.cgroup, victim.phase);
  return victims;
}

}  // namespace headroom::daemon
