// SPDX-License-Identifier: Apache-2.0
// The sweep of a cgroup that has used many block devices. The devices are loop devices without a
// file; a throttling rule for one makes the kernel keep statistics of it for the cgroup.
#include "observe/best_source.h"
#include "observe/bpf/bpf_sweep.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

constexpr int kDevices = 24;  // more than the 16 that a pass once read
constexpr int kFirstDevice = 1000;

// Loop devices of our own, removed at the end.
class LoopDevices {
 public:
  LoopDevices() : control_(::open("/dev/loop-control", O_RDWR | O_CLOEXEC)) {
    for (int number = kFirstDevice; control_ && number < kFirstDevice + kDevices; ++number) {
      if (::ioctl(control_.get(), LOOP_CTL_ADD, number) < 0) break;
      numbers_.push_back(number);
      std::string device;
      std::ifstream("/sys/block/loop" + std::to_string(number) + "/dev") >> device;
      names_.push_back(device);
    }
  }
  ~LoopDevices() {
    for (const int number : numbers_)
      ::ioctl(control_.get(), LOOP_CTL_REMOVE, number);
  }
  LoopDevices(const LoopDevices&) = delete;
  LoopDevices& operator=(const LoopDevices&) = delete;

  const std::vector<std::string>& names() const { return names_; }  // "7:1000"

 private:
  Fd control_;
  std::vector<int> numbers_;
  std::vector<std::string> names_;
};

// A cgroup with the io controller: of v2, or of v1's blkio on a hybrid host.
class IoCgroup {
 public:
  explicit IoCgroup(const std::string& name) {
    if (const auto root = test::writable_cgroup2())
      std::ofstream(*root + "/cgroup.subtree_control") << "+io" << std::flush;
    v2_ = ::access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    path_ = std::string(v2_ ? "/sys/fs/cgroup" : "/sys/fs/cgroup/blkio") + "/headroom-test-" +
            name + "-" + std::to_string(::getpid());
    made_ = ::mkdir(path_.c_str(), 0755) == 0;
  }
  ~IoCgroup() { ::rmdir(path_.c_str()); }
  IoCgroup(const IoCgroup&) = delete;
  IoCgroup& operator=(const IoCgroup&) = delete;

  bool use(const std::string& device) const {
    std::ofstream file(path_ + (v2_ ? "/io.max" : "/blkio.throttle.read_bps_device"));
    file << device << (v2_ ? " rbps=" : " ") << "1073741824" << std::flush;
    return made_ && file.good();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool v2_ = false;
  bool made_ = false;
};

class IoDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    if (devices_.names().size() != kDevices) GTEST_SKIP() << "no loop devices can be added";
    for (const std::string& device : devices_.names())
      if (!cgroup_.use(device)) GTEST_SKIP() << "no io controller";
  }

  LoopDevices devices_;
  IoCgroup cgroup_{"io"};
};

TEST_F(IoDevices, MoreThanSixteenAreAddedUp) {
  auto sweep = BpfSweep::open({.root = cgroup_.path(), .groups = HR_IO, .capacity = 16});
  ASSERT_TRUE(sweep) << sweep.error().what;
  auto swept = (*sweep)->sweep();
  ASSERT_TRUE(swept && swept->size() == 1);
  EXPECT_TRUE(swept->front().valid & HR_IO);
  EXPECT_EQ(swept->front().io_rbytes, 0u);
  EXPECT_TRUE((*sweep)->incomplete_io().empty());
  EXPECT_EQ((*sweep)->partial_groups(), 0u);
}

TEST_F(IoDevices, PastTheBoundOneRecordIsIncompleteAndNamed) {
  auto sweep =
      BpfSweep::open({.root = cgroup_.path(), .groups = HR_IO, .capacity = 16, .io_devices = 16});
  ASSERT_TRUE(sweep) << sweep.error().what;
  for (int pass = 0; pass < 2; ++pass) {
    auto swept = (*sweep)->sweep();
    ASSERT_TRUE(swept && swept->size() == 1);
    EXPECT_FALSE(swept->front().valid & HR_IO);
    EXPECT_EQ(swept->front().io_rbytes, HR_UNKNOWN);
    ASSERT_EQ((*sweep)->incomplete_io().size(), 1u);
    EXPECT_EQ((*sweep)->incomplete_io()[0], 0u);
    EXPECT_EQ((*sweep)->partial_groups(), std::uint32_t{HR_IO});
  }
}

// Counts who reads io.stat, of whichever cgroup.
class IoStatReads {
 public:
  explicit IoStatReads(const std::string& root) : events_(::inotify_init1(IN_NONBLOCK)) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(root))
      if (file.path().filename() == "io.stat")
        watched_ += ::inotify_add_watch(events_.get(), file.path().c_str(), IN_ACCESS) >= 0;
  }
  int watched() const { return watched_; }
  // Since the last call.
  bool any() const {
    alignas(inotify_event) char events[4096];
    bool any = false;
    while (::read(events_.get(), events, sizeof events) > 0)
      any = true;
    return any;
  }

 private:
  Fd events_;
  int watched_ = 0;
};

// Needs io.stat: cgroup v2's io controller.
TEST_F(IoDevices, ThatRecordAloneIsReadFromItsFileAndNeverForADecision) {
  if (::access((cgroup_.path() + "/io.stat").c_str(), F_OK) != 0)
    GTEST_SKIP() << "the io controller is cgroup v1's";
  auto best = BestSource::open({.root = "/sys/fs/cgroup", .io_devices = 16});
  ASSERT_TRUE(best) << best.error().what;
  EXPECT_EQ((*best)->group_sources()[10], "bpf") << "the others are not read from files for it";
  struct stat status {};
  ASSERT_EQ(::stat(cgroup_.path().c_str(), &status), 0);
  const IoStatReads reads("/sys/fs/cgroup");
  ASSERT_GE(reads.watched(), 2) << "the root's and that of the test";
  for (const bool decision : {false, true, false}) {
    (*best)->set_compare_usage(decision);
    (*best)->set_urgent(decision);
    auto swept = (*best)->sweep();
    ASSERT_TRUE(swept);
    EXPECT_EQ(reads.any(), !decision);
    const auto record = std::find_if(swept->begin(), swept->end(), [&](const hr_record& each) {
      return each.id == status.st_ino;
    });
    ASSERT_NE(record, swept->end());
    if (!decision) EXPECT_TRUE(record->valid & HR_IO);
  }
}

}  // namespace
}  // namespace headroom::observe
