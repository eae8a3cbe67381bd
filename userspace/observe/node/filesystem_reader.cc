// SPDX-License-Identifier: Apache-2.0
#include "observe/node/filesystem_reader.h"

#include "base/log/log_exceptions.h"

#include <pthread.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace headroom::observe {
namespace {

constexpr std::array kFilesystemSignals{
    Signal::kNodeFsAvailable,   Signal::kNodeFsInodesFree,     Signal::kImageFsAvailable,
    Signal::kImageFsInodesFree, Signal::kContainerFsAvailable, Signal::kContainerFsInodesFree};

}  // namespace

// The thread's, too: it may outlive the reader.
struct FilesystemReader::Shared {
  explicit Shared(Read reading) : read(std::move(reading)) {}

  const Read read;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool requested = false;  // set by the caller, cleared when the reading is complete
  bool stop = false;
  bool ended = false;
  Observations complete;  // of the last reading
  bool fresh = false;     // `complete` was not taken yet
  bool any = false;       // `complete` was read at least once
  Instant requested_at{};
};

FilesystemReader::FilesystemReader(Read read, Instant (*clock)())
    : shared_(std::make_shared<Shared>(std::move(read))), clock_(clock) {
  std::thread([shared = shared_] { run(*shared); }).detach();
}

FilesystemReader::~FilesystemReader() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kFirstWait, [this] { return shared_->ended; });
}

bool FilesystemReader::refresh(Observations& all) {
  std::unique_lock lock(shared_->mutex);
  const Instant at = clock_();
  if (!shared_->requested) {
    shared_->requested = true;
    shared_->requested_at = at;
    shared_->changed.notify_all();
  }
  shared_->changed.wait_for(lock, std::exchange(first_, false) ? kFirstWait : kWait,
                            [this] { return !shared_->requested; });
  const bool hangs = shared_->requested && at - shared_->requested_at >= kExpiry;
  const bool known = shared_->any && !hangs;
  if (known && !std::exchange(shared_->fresh, false)) return true;
  for (const Signal signal : kFilesystemSignals)
    of(all, signal) = known ? of(shared_->complete, signal) : std::nullopt;
  return known;
}

bool FilesystemReader::refresh_if_due(Instant at, Observations& all) {
  if (refreshed_at_ != Instant{} && at - refreshed_at_ < kPeriod) return true;
  refreshed_at_ = at;
  return refresh(all);
}

void FilesystemReader::run(Shared& shared) {
  ::pthread_setname_np(::pthread_self(), "hr-statvfs");
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.changed.wait(lock, [&] { return shared.stop || shared.requested; });
    if (shared.stop) break;
    lock.unlock();
    Observations seen;
    log::log_exceptions("read the filesystems", [&] { shared.read(seen); });
    lock.lock();
    shared.complete = seen;
    shared.fresh = shared.any = true;
    shared.requested = false;
    shared.changed.notify_all();
  }
  shared.ended = true;
  shared.changed.notify_all();
}

}  // namespace headroom::observe
