// SPDX-License-Identifier: Apache-2.0
#include "act/original_values.h"

#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::act {
namespace {

// --- the files of release 0.1, which had no version; to be removed in release 0.2 ----------------

CgroupId cgroup_from(const nlohmann::json& from, const char* key) {
  return CgroupId{from.at(key).get<std::uint64_t>()};
}

bool decode_unversioned(const nlohmann::json& whole, MemoryHighOverrides::Found& found) {
  for (const nlohmann::json& entry : whole.at("limits")) {
    OriginalMemoryHigh high{
        .path = entry.at("path"), .found = {}, .set = Bytes{entry.at("set").get<std::int64_t>()}};
    if (const nlohmann::json& bytes = entry.at("found"); !bytes.is_null())
      high.found = Bytes{bytes.get<std::int64_t>()};
    found.emplace(cgroup_from(entry, "cgroup"), std::move(high));
  }
  return true;
}

bool decode_unversioned(const nlohmann::json& whole, SuspendedLimits::Found& found) {
  for (const nlohmann::json& entry : whole.at("limits"))
    found.emplace(
        cgroup_from(entry, "cgroup"),
        OriginalLimits{.path = entry.at("path"),
                       .values = entry.at("found").get<std::map<std::string, std::string>>()});
  return true;
}

bool decode_unversioned(const nlohmann::json& whole, std::map<CgroupId, OriginalOomScores>& found) {
  for (const nlohmann::json& pod : whole.at("pods")) {
    OriginalOomScores scores{
        .path = pod.at("path"), .applied = pod.at("given").get<int>(), .values = {}};
    for (const nlohmann::json& value : pod.at("found"))
      scores.values.emplace(CgroupId{value.at(0).get<std::uint64_t>()}, value.at(1).get<int>());
    if (pod.contains("given_before")) scores.applied_before = pod.at("given_before").get<int>();
    found.emplace(cgroup_from(pod, "pod"), std::move(scores));
  }
  return true;
}

}  // namespace

MemoryHighFile memory_high_file(const std::filesystem::path& state_dir) {
  return MemoryHighFile(state_dir / "memory-high.json", &decode_unversioned);
}
MemoryMaxFile memory_max_file(const std::filesystem::path& state_dir) {
  return MemoryMaxFile(state_dir / "memory-max.json");
}
CgroupOverridesFile cpu_burst_file(const std::filesystem::path& state_dir) {
  return CgroupOverridesFile(state_dir / "cpu-burst.json");
}
CgroupOverridesFile cpu_suppress_file(const std::filesystem::path& state_dir) {
  return CgroupOverridesFile(state_dir / "cpu-suppress.json");
}
CgroupOverridesFile pod_swap_file(const std::filesystem::path& state_dir) {
  return CgroupOverridesFile(state_dir / "pod-swap.json");
}
SuspendedLimitsFile suspended_limits_file(const std::filesystem::path& state_dir) {
  return SuspendedLimitsFile(state_dir / "lifted-limits.json", &decode_unversioned);
}
OomScoreFile oom_score_file(const std::filesystem::path& state_dir) {
  return OomScoreFile(state_dir / "oom-scores.json", &decode_unversioned);
}

}  // namespace headroom::act
