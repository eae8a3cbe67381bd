// SPDX-License-Identifier: Apache-2.0
// FilesystemReader: reads the node's filesystems every second or two on a thread of its own,
// because statvfs() of a filesystem that hangs (a network mount, a failing disk) does not return.
//
// The caller takes the last reading that is complete and does not wait. It stays in force until it
// is too old: the machine slept, or a filesystem hangs. Then the caller waits briefly for another
// one, and without it the signals are unknown.
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
  // The longest that take() waits where no reading is in force, once: at the first call, and later;
  // while a filesystem hangs it does not wait again.
  static constexpr std::chrono::milliseconds kFirstWait{1000}, kWait{5};
  // A disk does not fill in milliseconds; and with a quarter of bytes and inodes left everywhere
  // twice this is soon enough.
  static constexpr std::chrono::milliseconds kPeriod{1000};
  // A reading as old as this is no longer in force.
  static constexpr Duration kExpiry = std::chrono::seconds(10);

  explicit FilesystemReader(Read read, Instant (*clock)() = now,
                            std::chrono::milliseconds period = kPeriod);
  // A thread that hangs is left behind after kFirstWait; it uses nothing of this object.
  ~FilesystemReader();
  FilesystemReader(const FilesystemReader&) = delete;
  FilesystemReader& operator=(const FilesystemReader&) = delete;

  // Takes over the last reading that is complete. False: the signals are unknown, because it is too
  // old or there was none yet.
  bool take(Observations& all);

 private:
  struct Shared;
  static void run(Shared& shared);

  const std::shared_ptr<Shared> shared_;
  bool first_ = true;
};

}  // namespace headroom::observe
