// SPDX-License-Identifier: Apache-2.0
// Which filesystems the disk signals are about; and where a running container writes.
#include "config/temp_dir.h"
#include "observe/node/disk_meter.h"
#include "observe/node/filesystem_reader.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TempDir;
namespace fs = std::filesystem;

dev_t device(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_dev : 0;
}

// On another device than these; both are there on every Linux.
fs::path other_device(const fs::path& than, const fs::path& nor = "/nowhere") {
  for (const char* candidate : {"/proc", "/sys"})
    if (device(candidate) != device(than) && device(candidate) != device(nor)) return candidate;
  return {};
}

TEST(Filesystems, NodefsIsWhereTheKubeletsRootWillBe) {
  TempDir dir;
  EXPECT_EQ(find_filesystems({}, dir.path()).nodefs, dir.path());
  fs::create_directories(dir.path() / "var/lib/kubelet");
  EXPECT_EQ(find_filesystems({}, dir.path()).nodefs, dir.path() / "var/lib/kubelet");
}

TEST(Filesystems, ARuntimeIsFoundOrThereIsNone) {
  TempDir dir;
  const Filesystems none = find_filesystems({}, dir.path());
  EXPECT_FALSE(none.imagefs || none.containerfs);
  EXPECT_EQ(none.images, ImageStorage{});
  for (const char* storage :
       {"var/lib/docker", "var/lib/containers/storage", "var/lib/containerd"}) {
    fs::create_directories(dir.path() / storage);  // the later ones are looked for first
    const Filesystems found = find_filesystems({}, dir.path());
    EXPECT_EQ(found.imagefs, dir.path() / storage);
    EXPECT_EQ(found.containerfs, dir.path() / storage);
    EXPECT_EQ(found.images, ImageStorage{}) << "one device";
  }
}

TEST(Filesystems, DedicatedAndSplitAreADeviceApart) {
  TempDir dir;
  const fs::path apart = other_device(dir.path());
  ASSERT_FALSE(apart.empty());
  EXPECT_EQ(find_filesystems({.nodefs = dir.path(), .imagefs = apart, .containerfs = {}}).images,
            (ImageStorage{.dedicated = true}));
  EXPECT_EQ(
      find_filesystems({.nodefs = dir.path(), .imagefs = apart, .containerfs = dir.path()}).images,
      (ImageStorage{.dedicated = true, .split = true}));
  const fs::path third = other_device(dir.path(), apart);
  ASSERT_FALSE(third.empty());
  EXPECT_EQ(find_filesystems({.nodefs = dir.path(), .imagefs = apart, .containerfs = third}).images,
            (ImageStorage{.dedicated = true, .split = true, .apart = true}));
}

struct Mounts {
  const char* name;
  const char* text;
  std::optional<std::string> upper;
};

TEST(WritableLayer, IsTheUpperDirectoryOfTheRoot) {
  for (const Mounts& c :
       {Mounts{"containerd",
               "603 486 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l/1/fs:/l/2/fs,"
               "upperdir=/var/lib/containerd/snapshots/9/fs,workdir=/w\n"
               "604 603 0:53 / /proc rw - proc proc rw\n",
               "/var/lib/containerd/snapshots/9/fs"},
        Mounts{"optional_fields", "1 0 0:5 / / rw master:1 shared:2 - overlay o rw,upperdir=/u\n",
               "/u"},
        Mounts{"an_escaped_blank", "1 0 0:5 / / rw - overlay o rw,upperdir=/my\\040disk/u\n",
               "/my disk/u"},
        Mounts{"mounted_over",
               "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / / rw - overlay o "
               "rw,upperdir=/u\n",
               "/u"},
        Mounts{"the_hosts_root", "1 0 8:1 / / rw - ext4 /dev/sda rw\n", std::nullopt},
        Mounts{"an_overlay_elsewhere", "1 0 0:5 / /mnt rw - overlay o rw,upperdir=/u\n",
               std::nullopt},
        Mounts{"read_only_overlay", "1 0 0:5 / / ro - overlay o ro,lowerdir=/a:/b\n", std::nullopt},
        Mounts{"cut_short", "1 0 0:5 / / rw - overl", std::nullopt},
        Mounts{"nothing", "", std::nullopt}})
    EXPECT_EQ(upper_directory(c.text), c.upper) << c.name;
}

}  // namespace
}  // namespace headroom::observe
