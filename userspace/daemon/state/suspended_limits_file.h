// SPDX-License-Identifier: Apache-2.0
// SuspendedLimitsFile: the original limits of killed cgroups, kept for the next daemon.
#pragma once

#include "act/limits/suspended_limits.h"

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::daemon {

class SuspendedLimitsFile {
 public:
  explicit SuspendedLimitsFile(const std::filesystem::path& state_dir);

  // Nothing lifted: no file.
  Result<> save(const act::SuspendedLimits::Found& found) const;
  // Nothing, if there is no file or it is of another boot. An error: it cannot be read, and is set
  // aside.
  Result<act::SuspendedLimits::Found> load() const;

 private:
  const std::filesystem::path path_;
  const std::string boot_id_;
};

}  // namespace headroom::daemon
