// SPDX-License-Identifier: Apache-2.0
// A disk of device mapper on a loop device: what is written to it is counted for both disks, and by
// the sweep and by the files once. Needs cgroup v2's io controller.
#include "observe/bpf/bpf_sweep.h"
#include "observe/cgroup/cgroupfs_source.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

constexpr std::size_t kSize = std::size_t{4} << 20;
constexpr std::size_t kWritten = std::size_t{1} << 20;

// A loop device over memory, which is no block device itself.
class LoopDisk {
 public:
  LoopDisk()
      : memory_(::memfd_create("headroom-test-disk", MFD_CLOEXEC)),
        control_(::open("/dev/loop-control", O_RDWR | O_CLOEXEC)) {
    if (::ftruncate(memory_.get(), kSize) != 0 || !control_) return;
    path_ = "/dev/loop" + std::to_string(::ioctl(control_.get(), LOOP_CTL_GET_FREE));
    disk_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    is_set_ = ::ioctl(disk_.get(), LOOP_SET_FD, memory_.get()) == 0;
  }
  ~LoopDisk() {
    if (is_set_) ::ioctl(disk_.get(), LOOP_CLR_FD);
  }
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  bool is_set() const { return is_set_; }
  const std::string& path() const { return path_; }

 private:
  Fd memory_, control_, disk_;
  std::string path_;
  bool is_set_ = false;
};

// The whole of another disk under another name, as `dmsetup create --table "0 SIZE linear DISK 0"`.
class LinearDisk {
 public:
  explicit LinearDisk(const std::string& below)
      : control_(::open("/dev/mapper/control", O_RDWR | O_CLOEXEC)) {
    const auto made = control_ ? ask(DM_DEV_CREATE) : std::nullopt;
    if (!made) return;
    number_ = minor(*made);
    is_made_ = ask(DM_TABLE_LOAD, "linear", below + " 0") && ask(DM_DEV_SUSPEND);  // and resumes it
  }
  ~LinearDisk() {
    if (number_) ask(DM_DEV_REMOVE);
  }
  LinearDisk(const LinearDisk&) = delete;
  LinearDisk& operator=(const LinearDisk&) = delete;

  bool is_made() const { return is_made_; }
  std::string path() const { return "/dev/dm-" + std::to_string(number_.value_or(0)); }

 private:
  std::optional<dev_t> ask(unsigned long what, const char* kind = nullptr,
                           const std::string& target = {}) {
    struct {
      dm_ioctl about;
      dm_target_spec table;
      char target[128];
    } request{};
    request.about.version[0] = DM_VERSION_MAJOR;
    request.about.data_size = sizeof request;
    request.about.data_start = offsetof(decltype(request), table);
    std::strncpy(request.about.name, "headroom-test", sizeof request.about.name - 1);
    if (kind) {
      request.about.target_count = 1;
      request.table.length = kSize / 512;
      std::strncpy(request.table.target_type, kind, sizeof request.table.target_type - 1);
      std::strncpy(request.target, target.c_str(), sizeof request.target - 1);
    }
    if (::ioctl(control_.get(), what, &request) != 0) return std::nullopt;
    return request.about.dev;
  }

  Fd control_;
  std::optional<unsigned> number_;
  bool is_made_ = false;
};

// Past the page cache, so that the writer's own cgroup is charged at once.
bool write_to(const std::string& disk) {
  const Fd file(::open(disk.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
  void* data = std::aligned_alloc(4096, kWritten);
  std::memset(data, 1, kWritten);
  const ssize_t wrote = ::pwrite(file.get(), data, kWritten, 0);
  std::free(data);
  return wrote == static_cast<ssize_t>(kWritten);
}

std::optional<hr_u64> written(CgroupSource& source) {
  const auto swept = source.sweep();
  if (!swept || swept->size() != 1 || !(swept->front().valid & HR_IO)) return std::nullopt;
  return swept->front().io_wbytes;
}

// Both sources are opened, and look once, before the driver is loaded.
TEST(DeviceMapper, WhatItPassesOnIsCountedOnceAlsoIfItIsLoadedLater) {
  const auto root = test::writable_cgroup2();
  if (root) std::ofstream(*root + "/cgroup.subtree_control") << "+io" << std::flush;
  test::TestCgroup cgroup("mapper");
  if (::access((cgroup.path() + "/io.stat").c_str(), F_OK) != 0)
    GTEST_SKIP() << "there is no io controller of cgroup v2";
  const LoopDisk loop;
  if (!loop.is_set()) GTEST_SKIP() << "there are no loop devices";
  auto sweep = BpfSweep::open({.root = cgroup.path(), .groups = HR_IO, .capacity = 16});
  ASSERT_TRUE(sweep) << sweep.error().what;
  auto files =
      CgroupfsSource::open({.root = cgroup.path(), .groups = HR_IO, .root_is_real = false});
  ASSERT_TRUE(files) << files.error().what;
  ASSERT_EQ(test::wait_for(cgroup.spawn([&] { _exit(write_to(loop.path()) ? 0 : 1); }), 10'000), 0);
  EXPECT_EQ(written(**sweep), kWritten);
  EXPECT_EQ(written(**files), kWritten);

  static_cast<void>(!std::system("modprobe -q dm_mod"));
  const LinearDisk disk(loop.path());
  if (!disk.is_made()) GTEST_SKIP() << "this kernel has no device mapper";
  ASSERT_EQ(test::wait_for(cgroup.spawn([&] { _exit(write_to(disk.path()) ? 0 : 1); }), 10'000), 0);
  std::ifstream io_stat(cgroup.path() + "/io.stat");
  const std::string text(std::istreambuf_iterator<char>(io_stat), {});
  EXPECT_EQ(io_totals(text).wbytes, 3 * kWritten) << "the kernel counts it twice: " << text;
  EXPECT_EQ(written(**sweep), 2 * kWritten) << text;
  EXPECT_EQ(written(**files), 2 * kWritten) << text;
}

}  // namespace
}  // namespace headroom::observe
