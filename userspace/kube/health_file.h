// SPDX-License-Identifier: Apache-2.0
// HealthFile: the state of headroom-kube in a file, with one part for each of its two workers.
// headroomd shows it in its status.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

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
