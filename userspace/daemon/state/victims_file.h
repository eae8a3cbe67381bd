// SPDX-License-Identifier: Apache-2.0
// VictimsFile: the evictions in progress, on disk, so that a restarted daemon resumes them.
#pragma once

#include "base/state/state_file.h"

#include <headroom/judge.h>
#include <headroom/result.h>

#include <filesystem>
#include <utility>
#include <vector>

namespace headroom::daemon {

class VictimsFile {
 public:
  explicit VictimsFile(const std::filesystem::path& state_dir);

  // Writes (new file, rename) if the victims differ from what was last saved; cheap otherwise.
  Result<> save(const std::vector<Victim>& victims);
  // Those of this boot; a file of an earlier boot counts as empty (cgroup ids and instants are
  // void), an absent one too. A damaged one is an error, moved aside so that nothing is lost.
  Result<std::vector<Victim>> load();

 private:
  bool unchanged(const std::vector<Victim>& victims) const;

  const state::StateFile<std::vector<Victim>> file_;
  std::vector<std::pair<CgroupId, Victim::Phase>> saved_;
};

}  // namespace headroom::daemon
