// SPDX-License-Identifier: Apache-2.0
#include "daemon/state/oom_score_file.h"

#include "base/atomic_file.h"
#include "daemon/state/state_file.h"

#include <cstdint>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::daemon {
namespace {

using nlohmann::json;

constexpr const char* kFile = "oom-scores.json";

json to_json(CgroupId pod, const act::OriginalOomScores& found) {
  json values = json::array();
  for (const auto& [cgroup, value] : found.values)
    values.push_back({cgroup.value, value});
  json pod_as_json{{"pod", pod.value},
                   {"path", found.path},
                   {"given", found.applied.value_or(0)},
                   {"found", std::move(values)}};
  if (found.applied_before) pod_as_json["given_before"] = *found.applied_before;
  return pod_as_json;
}

act::OriginalOomScores found_from(const json& from) {
  act::OriginalOomScores found{
      .path = from.at("path"), .applied = from.at("given").get<int>(), .values = {}};
  for (const json& value : from.at("found"))
    found.values.emplace(CgroupId{value.at(0).get<std::uint64_t>()}, value.at(1).get<int>());
  if (from.contains("given_before")) found.applied_before = from.at("given_before").get<int>();
  return found;
}

}  // namespace

OomScoreFile::OomScoreFile(const std::filesystem::path& state_dir)
    : path_(state_dir / kFile), boot_id_(read_boot_id()) {}

bool OomScoreFile::exists(const std::filesystem::path& state_dir) {
  std::error_code unknown;
  return std::filesystem::exists(state_dir / kFile, unknown);
}

Result<> OomScoreFile::save(const std::map<CgroupId, act::OriginalOomScores>& found) {
  if (found.empty()) {
    std::error_code error;
    std::filesystem::remove(path_, error);
    saved_.clear();
    if (error) return errno_failure("remove " + path_.string(), error.value());
    return {};
  }
  json pods = json::array();
  for (const auto& [pod, of_pod] : found)
    pods.push_back(to_json(pod, of_pod));
  std::string text = json{{"boot_id", boot_id_}, {"pods", std::move(pods)}}.dump(
                         1, ' ', false, json::error_handler_t::replace) +
                     "\n";
  if (text == saved_) return {};
  if (auto written = write_atomically(path_, text); !written) return written;
  saved_ = std::move(text);
  return {};
}

Result<std::map<CgroupId, act::OriginalOomScores>> OomScoreFile::load() {
  std::map<CgroupId, act::OriginalOomScores> found;
  std::ifstream file(path_);
  if (!file) return found;
  try {
    const json whole = json::parse(file);
    if (whole.at("boot_id") != boot_id_) return found;
    for (const json& pod : whole.at("pods"))
      found.emplace(CgroupId{pod.at("pod").get<std::uint64_t>()}, found_from(pod));
  } catch (const json::exception& damaged) {
    return tl::make_unexpected(move_damaged_file(path_, damaged.what()));
  }
  return found;
}

}  // namespace headroom::daemon
