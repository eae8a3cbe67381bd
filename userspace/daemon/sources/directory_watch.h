// SPDX-License-Identifier: Apache-2.0
// DirectoryWatch: reports files that were created or removed in a directory. The directory belongs
// to another program: it may be created later, removed, and created again.
#pragma once

#include "daemon/sources/event_loop.h"

#include <headroom/result.h>

#include <systemd/sd-event.h>

#include <filesystem>
#include <functional>
#include <string_view>

namespace headroom::daemon {

class DirectoryWatch {
 public:
  // Calls `changed` with the name of a file, or with "" when the directory was created: then every
  // file may be new. At the event loop's lowest priority, so that no turn waits for it.
  using Changed = std::function<void(std::string_view name)>;
  DirectoryWatch(sd_event* event, std::filesystem::path directory, Changed changed);

  const std::filesystem::path& directory() const { return directory_; }
  bool is_watching() const { return source_ != nullptr; }
  // Starts or restarts the watch; cheap if nothing is to be done. Error: the directory does not
  // exist or cannot be watched; call again later.
  Result<> start();

 private:
  static int on_event(sd_event_source* source, const inotify_event* event, void* watch);

  sd_event* event_;
  std::filesystem::path directory_;
  Changed changed_;
  EventSource source_;
};

}  // namespace headroom::daemon
