// SPDX-License-Identifier: Apache-2.0
// Taking memory until enough is gone, or the time is up; a tree of files stands in for the kernel.
#include "act/limits/limit_lowering.h"

#include "base/file_io.h"
#include "support/fake_cgroupfs.h"
#include "support/make_again.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

namespace headroom::act {
namespace {

using namespace std::chrono_literals;
using test::FakeCgroupfs;

struct MemoryLoweringTest : testing::Test {
  Fd open_cgroup() const {
    return Fd(::open(fs.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  FakeCgroupfs fs{{.name = "",
                   .files = {{"memory.current", "1048576\n"}, {"memory.reclaim", ""}},
                   .children = {}}};
  const Fd cgroup = open_cgroup();
};

TEST_F(MemoryLoweringTest, SucceedsWhenUsageIsBelowTheTarget) {
  const auto end = reclaim_until_below("s", cgroup.get(), 1_MiB, 1s, {});
  EXPECT_TRUE(end.reached);
  EXPECT_EQ(end.in_use, 1_MiB);
  EXPECT_EQ(end.error, 0);
}

TEST_F(MemoryLoweringTest, EndsAtTheTimeout) {
  const auto end = reclaim_until_below("s", cgroup.get(), 4_KiB, 20ms, {});
  EXPECT_FALSE(end.reached);
  EXPECT_EQ(end.in_use, 1_MiB);
}

TEST_F(MemoryLoweringTest, ReportsAReadError) {
  fs.write("", "memory.current", "nonsense");
  EXPECT_EQ(reclaim_until_below("s", cgroup.get(), 4_KiB, 1s, {}).error, EIO);
}

TEST_F(MemoryLoweringTest, OfACgroupThatWasMadeAgainReclaimsNothing) {
  test::make_again(fs.root());
  EXPECT_EQ(reclaim_until_below("s", cgroup.get(), 4_KiB, 20ms, {}).error, ENOENT);
  EXPECT_EQ(std::filesystem::file_size(fs.root() / "memory.reclaim"), 0u);
}

TEST_F(MemoryLoweringTest, RunsOncePerName) {
  LimitLoweringThreads threads;
  threads.begin("s", open_cgroup(), 4_KiB, 50ms);
  threads.begin("s", open_cgroup(), 4_KiB, 50ms);
  EXPECT_TRUE(threads.in_progress("s"));
  std::vector<LimitLowering::End> ended;
  for (int i = 0; i < 200 && ended.empty(); ++i) {
    std::this_thread::sleep_for(10ms);
    ended = threads.collect_finished();
  }
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].reached);
  EXPECT_FALSE(threads.in_progress("s"));
}

}  // namespace
}  // namespace headroom::act
