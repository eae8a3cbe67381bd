// SPDX-License-Identifier: Apache-2.0
// FilesystemReader: reads the node's filesystems on a thread of its own, because statvfs() of a
// filesystem that hangs (a network mount, a failing disk) does not return.
//
// The caller waits briefly, which is enough for a filesystem that works. If there is no answer, the
// last one stays in force until the request is overdue; then the signals are unknown.
#pragma once

#include "base/clock.h"

#include <headroom/snapshot.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace headroom::observe {

// Filesystems: which ones the disk signals are about, as named or as found.

// Empty: to be found.
struct FilesystemPaths {
  std::filesystem::path nodefs;
  std::filesystem::path imagefs;
  std::filesystem::path containerfs;
  friend bool operator==(const FilesystemPaths&, const FilesystemPaths&) = default;
};

struct Filesystems {
  std::filesystem::path nodefs;
  std::optional<std::filesystem::path> imagefs;      // absent: no runtime here
  std::optional<std::filesystem::path> containerfs;  // of writable layers
  ImageStorage images;
};

// nodefs holds the kubelet's root directory, or will. Images and layers are where the runtime that
// is installed keeps them: containerd, CRI-O and Podman, Docker. `root` stands for "/" in tests.
Filesystems find_filesystems(const FilesystemPaths& configured,
                             const std::filesystem::path& root = "/");

// The same for a daemon: stat() of a mount whose server is gone does not return, so it is done on a
// thread that may be left behind. Nothing after kFindWait.
inline constexpr std::chrono::milliseconds kFindWait{500};
std::optional<Filesystems> find_filesystems_in_time(const FilesystemPaths& configured);

class FilesystemReader {
 public:
  // Writes the observations of the filesystems; called on the thread.
  using Read = std::function<void(Observations&)>;
  // The longest that refresh() waits: at the first call, and at later ones.
  static constexpr std::chrono::milliseconds kFirstWait{1000}, kWait{5};
  // A disk does not fill in milliseconds.
  static constexpr Duration kPeriod = std::chrono::seconds(1);
  // A request that is not answered for this long makes the signals unknown.
  static constexpr Duration kExpiry = std::chrono::seconds(10);

  explicit FilesystemReader(Read read, Instant (*clock)() = now);
  // A thread that hangs is left behind after kFirstWait; it uses nothing of this object.
  ~FilesystemReader();
  FilesystemReader(const FilesystemReader&) = delete;
  FilesystemReader& operator=(const FilesystemReader&) = delete;

  // Requests a reading and takes over the last one that is complete. False: the signals are
  // unknown, because the request is overdue or there was no answer yet.
  bool refresh(Observations& all);
  // The same, but at most once in kPeriod; true where nothing was due.
  bool refresh_if_due(Instant at, Observations& all);

 private:
  struct Shared;
  static void run(Shared& shared);

  const std::shared_ptr<Shared> shared_;
  Instant (*const clock_)();
  bool first_ = true;
  Instant refreshed_at_{};  // by refresh_if_due()
};

}  // namespace headroom::observe
