// SPDX-License-Identifier: Apache-2.0
#include "observe/node/filesystem_reader.h"

#include "base/log/journal.h"
#include "base/process_stat.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKubeletRoot = "var/lib/kubelet";
constexpr std::array<std::string_view, 4> kRuntimes{
    "var/lib/containerd/io.containerd.snapshotter.v1.overlayfs",
    "var/lib/containerd",
    "var/lib/containers/storage",  // CRI-O and Podman
    "var/lib/docker",
};

bool path_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What is not there yet will be made on its parent's filesystem.
fs::path nearest_existing(fs::path path) {
  while (!path_exists(path) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  return path;
}

std::optional<fs::path> runtime_storage(const fs::path& root) {
  for (const std::string_view candidate : kRuntimes)
    if (path_exists(root / candidate)) return root / candidate;
  return std::nullopt;
}

std::optional<dev_t> device_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status.st_dev;
}

// Unknown is not apart: the kubelet's rule.
bool on_different_devices(const std::optional<fs::path>& a, const std::optional<fs::path>& b) {
  if (!a || !b) return false;
  const auto first = device_of(*a);
  const auto second = device_of(*b);
  return first && second && *first != *second;
}

}  // namespace

Filesystems find_filesystems(const FilesystemPaths& configured, const fs::path& root) {
  Filesystems found;
  found.nodefs =
      nearest_existing(configured.nodefs.empty() ? root / kKubeletRoot : configured.nodefs);
  found.imagefs = configured.imagefs.empty() ? runtime_storage(root) : configured.imagefs;
  found.containerfs = configured.containerfs.empty() ? found.imagefs : configured.containerfs;
  found.images.dedicated = on_different_devices(found.imagefs, found.nodefs);
  found.images.split =
      found.images.dedicated && on_different_devices(found.containerfs, found.imagefs);
  found.images.apart = found.images.split && on_different_devices(found.containerfs, found.nodefs);
  return found;
}

std::optional<Filesystems> find_filesystems_in_time(const FilesystemPaths& configured) {
  const auto answer = std::make_shared<std::promise<Filesystems>>();
  std::future<Filesystems> found = answer->get_future();
  std::thread([answer, configured] {
    report::set_thread_name("statvfs");
    answer->set_value(find_filesystems(configured));
  }).detach();
  if (found.wait_for(kFindWait) != std::future_status::ready) return std::nullopt;
  return found.get();
}

namespace {

constexpr std::array kFilesystemSignals{
    Signal::kNodeFsAvailable,   Signal::kNodeFsInodesFree,     Signal::kImageFsAvailable,
    Signal::kImageFsInodesFree, Signal::kContainerFsAvailable, Signal::kContainerFsInodesFree};

bool is_roomy(const Observations& all) {
  return std::all_of(kFilesystemSignals.begin(), kFilesystemSignals.end(), [&](Signal signal) {
    const auto& seen = of(all, signal);
    return !seen || seen->available >= seen->capacity / 4;
  });
}

}  // namespace

// The thread's, too: it may outlive the reader.
struct FilesystemReader::Shared {
  const Read read;
  Instant (*const clock)();
  const std::chrono::milliseconds period;
  std::mutex mutex{};  // of what follows
  std::condition_variable changed{};
  bool wanted = false;  // at once; until a reading is complete
  bool stop = false;
  bool ended = false;
  Observations complete{};  // of the last reading
  bool fresh = false;       // `complete` was not taken yet
  std::optional<Instant> completed_at{};
};

FilesystemReader::FilesystemReader(Read read, Instant (*clock)(), std::chrono::milliseconds period)
    : shared_(new Shared{.read = std::move(read), .clock = clock, .period = period}) {
  std::thread([shared = shared_] { run(*shared); }).detach();
}

FilesystemReader::~FilesystemReader() {
  std::unique_lock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, kFirstWait, [this] { return shared_->ended; });
}

bool FilesystemReader::take(Observations& all) {
  std::unique_lock lock(shared_->mutex);
  const auto in_force = [this] {
    return shared_->completed_at && shared_->clock() - *shared_->completed_at < kExpiry;
  };
  const auto wait = std::exchange(first_, false) ? kFirstWait : kWait;
  if (!in_force() && !shared_->wanted) {
    shared_->wanted = true;
    shared_->changed.notify_all();
    shared_->changed.wait_for(lock, wait, in_force);
  }
  const bool known = in_force();
  if (known && !std::exchange(shared_->fresh, false)) return true;
  for (const Signal signal : kFilesystemSignals)
    of(all, signal) = known ? of(shared_->complete, signal) : std::nullopt;
  return known;
}

void FilesystemReader::run(Shared& shared) {
  report::set_thread_name("statvfs");
  std::unique_lock lock(shared.mutex);
  while (!shared.stop) {
    lock.unlock();
    Observations seen;
    log::log_exceptions("read the filesystems", [&] { shared.read(seen); });
    lock.lock();
    shared.complete = seen;
    shared.fresh = true;
    shared.completed_at = shared.clock();
    shared.wanted = false;
    shared.changed.notify_all();
    const auto pause = is_roomy(seen) ? 2 * shared.period : shared.period;
    shared.changed.wait_for(lock, pause, [&] { return shared.stop || shared.wanted; });
  }
  shared.ended = true;
  shared.changed.notify_all();
}

}  // namespace headroom::observe
