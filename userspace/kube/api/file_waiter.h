// SPDX-License-Identifier: Apache-2.0
// FileWaiter: waits until a watched directory changes, a time is reached, or a stop is requested.
#pragma once

#include "base/fd.h"

#include <headroom/units.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>

namespace headroom::kube {

// Watches may fail (the directory is missing, or no inotify watch is left): the caller then polls
// with this period.
inline constexpr Duration kPollPeriod = std::chrono::seconds(1);

class FileWaiter {
 public:
  explicit FileWaiter(const std::stop_token& stop);

  // Watches the directory of this file, because the file may be renamed, created again or appended
  // to. Call it again until the watch works.
  void watch(const std::filesystem::path& file);

  // Waits at most `longest`, and at most kPollPeriod if a directory is not watched.
  void wait(Duration longest);

 private:
  void drain();

  Fd events_, ended_;
  std::map<std::filesystem::path, int> watches_;  // directory → watch descriptor, or -1
  std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace headroom::kube
