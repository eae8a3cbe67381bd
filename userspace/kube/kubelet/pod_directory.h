// SPDX-License-Identifier: Apache-2.0
// PodDirectory: a directory with one file for each pod, which headroomd watches.
//
// A file is written only when its content changes, because headroomd reads it after each write. The
// files of an earlier run are kept, so a restart writes nothing and forgets no pod.
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::kube {

// Configz: turns a running kubelet's configuration into the file that headroomd's configuration is
// based on.

// Makes a KubeletConfiguration from the response of /configz, {"kubeletconfig": {...}}. It has only
// the keys that headroom uses, because a newer kubelet has keys that headroomd would refuse. It
// omits registerWithTaints: the API server knows the taints of a registered node, and a taint that
// was removed since must not evict a pod.
Result<std::string> configuration_from(std::string_view configz);

class PodDirectory {
 public:
  // Creates the directory if it is missing.
  static Result<PodDirectory> open(std::filesystem::path directory);

  struct Changes {
    std::size_t written = 0;
    std::size_t removed = 0;
    std::vector<Error> failed;  // retried by the next call
  };
  // `pods`: uid → the text of its file. Files of other pods are removed.
  Changes sync(const std::map<std::string, std::string>& pods);

  std::size_t size() const { return hashes_.size(); }

 private:
  explicit PodDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {}
  std::filesystem::path file_of(const std::string& uid) const {
    return directory_ / (uid + ".json");
  }
  Result<> load_existing();

  std::filesystem::path directory_;
  std::map<std::string, std::size_t> hashes_;  // uid → hash of the text of its file
};

}  // namespace headroom::kube
