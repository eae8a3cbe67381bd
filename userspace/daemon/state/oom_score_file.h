// SPDX-License-Identifier: Apache-2.0
// OomScoreFile: the original oom_score_adj values, kept for the next daemon.
#pragma once

#include "act/kill/oom_scores.h"

#include <headroom/result.h>

#include <filesystem>
#include <map>
#include <string>

namespace headroom::daemon {

class OomScoreFile {
 public:
  explicit OomScoreFile(const std::filesystem::path& state_dir);
  // A former daemon did not live to put them back.
  static bool exists(const std::filesystem::path& state_dir);

  // Nothing kept: no file.
  Result<> save(const std::map<CgroupId, act::OriginalOomScores>& found);
  // Nothing, where there is no file or it is of another boot. An error: it cannot be read, and is
  // set aside.
  Result<std::map<CgroupId, act::OriginalOomScores>> load();

 private:
  const std::filesystem::path path_;
  const std::string boot_id_;
  std::string saved_;
};

}  // namespace headroom::daemon
