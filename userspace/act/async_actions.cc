// SPDX-License-Identifier: Apache-2.0
#include "act/async_actions.h"

#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/process_stat.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

struct CloseDir {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A directory that is being emptied; its name is needed to remove it afterwards.
struct Level {
  std::unique_ptr<DIR, CloseDir> listing;
  std::string name;
  bool removed_any = false;
};

// Each level keeps a descriptor open.
constexpr std::size_t kMaxDepth = 512;

class Removal {
 public:
  explicit Removal(const std::stop_token& stop) : stop_(stop) {}

  Result<> empty(Fd top) {
    struct stat status {};
    if (::fstat(top.get(), &status) != 0) return errno_failure("stat a directory", errno);
    device_ = status.st_dev;
    if (!enter(std::move(top), "")) return outcome();
    while (!levels_.empty()) {
      if (stop_.stop_requested()) return failure("stopped", ECANCELED);
      step();
    }
    return outcome();
  }

 private:
  bool enter(Fd directory, std::string name) {
    if (levels_.size() == kMaxDepth) return record_error(ELOOP, name), false;
    std::unique_ptr<DIR, CloseDir> listing(::fdopendir(directory.get()));
    if (!listing) return record_error(errno, name), false;
    directory.release();  // closedir() closes it
    levels_.push_back({std::move(listing), std::move(name)});
    return true;
  }

  void step() {
    DIR* const here = levels_.back().listing.get();
    const dirent* entry = ::readdir(here);
    if (!entry) return leave();
    const std::string name = entry->d_name;
    if (name == "." || name == "..") return;
    if (::unlinkat(::dirfd(here), name.c_str(), 0) == 0) {
      levels_.back().removed_any = true;
      return;
    }
    if (errno != EISDIR && errno != EPERM) return record_error(errno, name);
    const int unlink_error = errno;
    struct stat status {};
    if (::fstatat(::dirfd(here), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return record_error(errno, name);
    if (!S_ISDIR(status.st_mode)) return record_error(unlink_error, name);
    if (status.st_dev != device_)
      return record_error(EXDEV, name);  // a mount point: must not be emptied
    Fd child(
        ::openat(::dirfd(here), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!child) return record_error(errno, name);
    enter(std::move(child), name);
  }

  void leave() {
    // A directory that shrank while it was read may not have listed all its entries.
    if (levels_.back().removed_any) {
      levels_.back().removed_any = false;
      ::rewinddir(levels_.back().listing.get());
      return;
    }
    const std::string name = levels_.back().name;
    levels_.pop_back();
    if (levels_.empty()) return;
    if (::unlinkat(::dirfd(levels_.back().listing.get()), name.c_str(), AT_REMOVEDIR) != 0)
      record_error(errno, name);
  }

  void record_error(int error, const std::string& name) {
    if (error == ENOENT || error_ != 0) return;
    error_ = error;
    name_ = name;
  }

  Result<> outcome() const {
    if (error_ == 0) return {};
    return errno_failure("remove " + name_, error_);
  }

  const std::stop_token& stop_;
  std::vector<Level> levels_;
  dev_t device_ = 0;
  int error_ = 0;
  std::string name_;
};

}  // namespace

Result<> remove_tree(const std::string& path, const std::stop_token& stop) {
  Fd top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top && errno == ENOENT) return {};
  if (!top) return errno_failure("open " + path, errno);
  if (auto emptied = Removal(stop).empty(std::move(top)); !emptied)
    return failure(path + ": " + emptied.error().what, emptied.error().code);
  if (::rmdir(path.c_str()) != 0 && errno != EBUSY && errno != ENOENT)
    return errno_failure("remove " + path, errno);
  return {};
}

bool AsyncActions::start(const Decision& decision, Work work) {
  {
    const std::lock_guard lock(mutex_);
    running_.remove_if([](const RunningAction& action) { return action.finished; });
  }
  if (running_.size() >= kMaxRunning) return false;
  RunningAction& action = running_.emplace_back();
  try {
    action.thread = std::jthread([this, &action, decision,
                                  work = std::move(work)](const std::stop_token& stop) {
      report::set_thread_name("action");
      int error = EIO;  // if it throws
      log::log_exceptions("carry out an action", [&] { error = work(stop); });
      const std::lock_guard lock(mutex_);
      action.finished = true;
      log::log_exceptions("record an action", [&] {
        ended_.push_back(Outcome{
            .decision = decision, .result = Outcome::Result::kDone, .error = error, .at = now_()});
      });
    });
  } catch (const std::system_error&) {
    running_.pop_back();
    return false;
  }
  return true;
}

void AsyncActions::collect(std::vector<Outcome>& ended) {
  ended.clear();
  if (running_.empty()) return;
  const std::lock_guard lock(mutex_);
  std::swap(ended, ended_);
}

}  // namespace headroom::act
