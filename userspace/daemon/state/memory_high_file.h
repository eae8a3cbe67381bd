// SPDX-License-Identifier: Apache-2.0
// HighsFile: the memory.high values the ladder found, kept so that they outlive the daemon.
#pragma once

#include "act/limits/memory_high_overrides.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::daemon {

class MemoryHighFile {
 public:
  explicit MemoryHighFile(const std::filesystem::path& state_dir);

  // Nothing kept: no file.
  Result<> save(const act::MemoryHighOverrides::Found& found) const;
  // Nothing, where there is no file or it is of another boot. An error: it cannot be read, and is
  // set aside.
  Result<act::MemoryHighOverrides::Found> load() const;

 private:
  const std::filesystem::path path_;
  const std::string boot_id_;
};

}  // namespace headroom::daemon
