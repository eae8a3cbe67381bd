// SPDX-License-Identifier: Apache-2.0
// TaintStore: the operator's taints: those of the configuration with the edits since. An edit is
// saved before it is answered, and is kept over restarts of the daemon until the machine boots
// again.
//
// Edits come from the bus's thread, and the loop reads the taints in force: a mutex protects them.
#pragma once

#include "base/file_io.h"
#include "base/state/saved_taints.h"
#include "judge/admission/taints.h"

#include <headroom/result.h>
#include <headroom/taint.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace headroom::daemon {

class TaintStore {
 public:
  explicit TaintStore(const std::filesystem::path& state_dir);

  // Merges the saved taints with the configuration's. Error: the file could not be read, and only
  // the configuration's taints are in force; or it could not be written.
  Result<> configure(std::vector<Taint> configured);

  // Applies all edits or none; returns the taints then in force. Any thread.
  Result<std::vector<Taint>> edit(std::span<const TaintEdit> edits, bool overwrite);

  std::vector<Taint> active_taints() const;
  // The taints in force, shared with policies and reasons.
  std::vector<std::shared_ptr<const Taint>> shared_taints() const;

  // Readable after an edit; the loop then calls clear_edited().
  int edited_fd() const { return edited_.get(); }
  void clear_edited() const;

 private:
  Result<> load();
  Result<> save(const std::vector<Taint>& taints) const;

  const state::StateFile<state::SavedTaints> file_;
  const Fd edited_;
  mutable std::mutex mutex_;
  bool loaded_ = false;
  std::vector<Taint> configured_;
  std::vector<Taint> taints_;
};

}  // namespace headroom::daemon
