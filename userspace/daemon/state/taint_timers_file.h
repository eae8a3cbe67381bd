// SPDX-License-Identifier: Apache-2.0
// TaintTimersFile: how long each pod still tolerates the node's taints, on disk, so that the timers
// continue after a restart of the daemon.
#pragma once

#include "base/state/state_file.h"

#include <headroom/judge.h>
#include <headroom/result.h>

#include <filesystem>
#include <vector>

namespace headroom::daemon {

class TaintTimersFile {
 public:
  explicit TaintTimersFile(const std::filesystem::path& state_dir);

  // Writes if the timers differ from what was last saved; cheap otherwise.
  Result<> save(const std::vector<TaintTimer>& timers);
  // Those of this boot; a file of an earlier one counts as empty, as does an absent one. A damaged
  // one is an error, set aside.
  Result<std::vector<TaintTimer>> load();

 private:
  const state::StateFile<std::vector<TaintTimer>> file_;
  std::vector<TaintTimer> saved_;
};

}  // namespace headroom::daemon
