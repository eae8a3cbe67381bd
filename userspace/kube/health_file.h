// SPDX-License-Identifier: Apache-2.0
// HealthFile: the state of headroom-kube, in a file that headroomd shows: each of its two workers
// has a part.
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

  // On any thread. The file is a map of parts: {"kubelet": {...}, "api": {...}}; a reader sees the
  // old or the new content. A failing write is logged once.
  void publish(const std::string& part, nlohmann::ordered_json state);

 private:
  std::filesystem::path file_;
  std::mutex mutex_;
  std::map<std::string, nlohmann::ordered_json> parts_;
  std::string written_;
  bool unwritten_ = false;
};

}  // namespace headroom::kube
