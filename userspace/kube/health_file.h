// SPDX-License-Identifier: Apache-2.0
// HealthFile: the state of headroom-kube in a file, with one part for each of its two workers,
// which headroomd shows in its status; and the answer to a health check.
#pragma once

#include "config/config.h"

#include <headroom/result.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

// headroom-kube --health: whether the running headroom-kube still queries the kubelet.

// headroom-kube writes its status file after every query, also after a failed one: a kubelet that
// does not answer is no failure of headroom-kube. Success if the file is younger than the longest
// time between two queries, or if no kubelet is configured.
Result<> health(const config::KubernetesConfig& config, std::time_t now);

class HealthFile {
 public:
  explicit HealthFile(std::filesystem::path file) : file_(std::move(file)) {}

  // May be called on any thread. The file is a map of parts: {"kubelet": {...}, "api": {...}}. A
  // reader sees the old or the new content. A failing write is logged once.
  void publish(const std::string& part, nlohmann::ordered_json state);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
  std::map<std::string, nlohmann::ordered_json> parts_;
  std::string written_;
  bool unwritten_ = false;
};

}  // namespace headroom::kube
