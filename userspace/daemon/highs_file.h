// SPDX-License-Identifier: Apache-2.0
// HighsFile: the memory.high values the ladder found, kept so that they outlive the daemon.
#pragma once

#include "act/held_highs.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::daemon {

class HighsFile {
 public:
  explicit HighsFile(const std::filesystem::path& state_dir);

  // Nothing kept: no file.
  Result<> save(const act::HeldHighs::Found& found) const;
  // Nothing, where there is no file or it is of another boot. An error: it cannot be read, and is
  // set aside.
  Result<act::HeldHighs::Found> load() const;

 private:
  const std::filesystem::path path_;
  const std::string boot_id_;
};

}  // namespace headroom::daemon
