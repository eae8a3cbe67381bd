// SPDX-License-Identifier: Apache-2.0
// CgroupSettingsWatch: reports, through inotify, writes to a setting of a watched cgroup, and its
// removal.
#pragma once

#include "base/file_io.h"

#include <filesystem>
#include <map>
#include <string>

namespace headroom::observe {

class CgroupSettingsWatch {
 public:
  explicit CgroupSettingsWatch(std::filesystem::path root);

  int descriptor() const { return inotify_.get(); }  // -1: no inotify, nothing is reported
  // From now on, or from when it is there and this is called again. Cheap if it is watched.
  void watch(const std::string& path);
  // Takes what has happened; true if a setting was written or a cgroup went.
  bool drain();

 private:
  const std::filesystem::path root_;
  Fd inotify_;
  std::map<std::string, int> watched_;
};

}  // namespace headroom::observe
