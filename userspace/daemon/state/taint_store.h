// SPDX-License-Identifier: Apache-2.0
// TaintStore: the operator's taints: those of the configuration, and those edited since. An edit is
// on disk before it is answered, and survives restarts of the daemon until the machine boots again.
//
// Edits come from the bus's thread, the loop reads the taints in force: hence the mutex.
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

  // What was kept, brought up to date with the configuration. An error is of the file: it could
  // not be read, and the configuration's alone are in force, or not be written.
  Result<> configure(std::vector<Taint> configured);

  // All or nothing; returns what is in force then. Any thread.
  Result<std::vector<Taint>> edit(std::span<const TaintEdit> edits, bool overwrite);

  std::vector<Taint> active_taints() const;
  // The same, to be pointed to by policies and reasons.
  std::vector<std::shared_ptr<const Taint>> shared_taints() const;

  // Readable once an edit awaits the loop, which then calls clear_edited().
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
