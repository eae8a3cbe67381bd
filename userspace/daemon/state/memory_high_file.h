// SPDX-License-Identifier: Apache-2.0
// MemoryHighFile: the original memory.high values of overridden cgroups, kept for the next daemon.
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
