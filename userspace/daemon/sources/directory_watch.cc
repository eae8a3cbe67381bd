// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/directory_watch.h"

#include "base/log/journal.h"

#include <sys/inotify.h>

#include <utility>

namespace headroom::daemon {

DirectoryWatch::DirectoryWatch(sd_event* event, std::filesystem::path directory, Changed changed)
    : event_(event), directory_(std::move(directory)), changed_(std::move(changed)) {}

Result<> DirectoryWatch::start() {
  if (source_) return {};
  constexpr std::uint32_t kChangeEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
  constexpr std::uint32_t kRemovalEvents = IN_DELETE_SELF | IN_MOVE_SELF;
  sd_event_source* source = nullptr;
  const int result =
      sd_event_add_inotify(event_, &source, directory_.c_str(),
                           kChangeEvents | kRemovalEvents | IN_ONLYDIR, &on_event, this);
  if (result < 0) return errno_failure("watch " + directory_.native(), -result);
  source_.reset(source);
  // Below the timer's priority: many files must not delay a turn that is due.
  sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
  changed_("");
  return {};
}

int DirectoryWatch::on_event(sd_event_source*, const inotify_event* event, void* data) {
  auto* watch = static_cast<DirectoryWatch*>(data);
  if (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) {
    watch->source_.reset();
    return 0;
  }
  log::log_exceptions("react to a changed file",
                      [&] { watch->changed_(event->len > 0 ? event->name : ""); });
  return 0;
}

}  // namespace headroom::daemon
