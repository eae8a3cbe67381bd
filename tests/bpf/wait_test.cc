// SPDX-License-Identifier: Apache-2.0
// The stall and throttle programs on the kernel at hand: whose wait, for what, how long; and that a
// gone cgroup leaves nothing behind. On a host whose controllers are on cgroup v1 the limits are
// v1's, and stalls are charged to the v2 cgroup all the same.
#include "observe/bpf/wait_watch.h"
#include "support/test_cgroup.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using test::TestCgroup;
using test::wait_for;
using test::writable_cgroup2;

void pass_time(int milliseconds) {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

// A limit on what runs in a test cgroup: its own where it has the controller, else one of cgroup v1
// that its processes enter as well.
class Limit {
 public:
  struct Setting {
    const char* file;
    const char* value;
  };
  Limit(const TestCgroup& cgroup, const char* controller, Setting v2, Setting v1) {
    write(*writable_cgroup2() + "/cgroup.subtree_control", std::string("+") + controller);
    id_ = cgroup.id();
    if (write(cgroup.path() + "/" + v2.file, v2.value)) {
      works_ = true;
      return;
    }
    v1_ = std::string("/sys/fs/cgroup/") + controller + "/headroom-test-limit-" +
          std::to_string(getpid());
    if (mkdir(v1_.c_str(), 0755) != 0) {
      v1_.clear();
      return;
    }
    works_ = write(v1_ + "/" + v1.file, v1.value);
    struct stat status {};
    stat(v1_.c_str(), &status);
    id_ = CgroupId{status.st_ino};
    hierarchy_ = hierarchy_of(controller);
  }
  ~Limit() { remove(); }
  explicit operator bool() const { return works_; }
  // By the process that is to live under it.
  void enter() const {
    if (!v1_.empty()) write(v1_ + "/cgroup.procs", std::to_string(getpid()));
  }
  // Of the cgroup that bears it.
  CgroupId id() const { return id_; }
  int hierarchy() const { return hierarchy_; }
  void remove() {
    for (int i = 0; !v1_.empty() && rmdir(v1_.c_str()) != 0 && i < 1000; ++i)
      pass_time(1);
    v1_.clear();
  }

 private:
  static bool write(const std::string& file, const std::string& value) {
    const int fd = open(file.c_str(), O_WRONLY);
    const bool good = fd >= 0 && ::write(fd, value.data(), value.size()) > 0;
    close(fd);
    return good;
  }
  // As /proc/self/cgroup numbers them.
  static int hierarchy_of(const std::string& controller) {
    std::ifstream lines("/proc/self/cgroup");
    for (std::string line; std::getline(lines, line);)
      if (line.find(":" + controller + ":") != std::string::npos) return std::atoi(line.c_str());
    return -1;
  }

  std::string v1_;
  CgroupId id_;
  int hierarchy_ = 0;
  bool works_ = false;
};

std::uint64_t in_buckets(const hr_waits& waits) {
  return std::accumulate(std::begin(waits.buckets), std::end(waits.buckets), std::uint64_t{0});
}

std::optional<hr_stalls> stalls_of(StallWatch& watch, CgroupId id) {
  auto read = watch.read();
  EXPECT_TRUE(read) << read.error().what;
  const hr_stalls* found = read ? read->find(id.value) : nullptr;
  return found ? std::optional(*found) : std::nullopt;
}

// Reads a file over and over, under whatever limit the process is.
void read_rounds(const std::string& file, int rounds) {
  static char buffer[1 << 16];
  for (int round = 0; round < rounds; ++round) {
    const int fd = open(file.c_str(), O_RDONLY);
    while (read(fd, buffer, sizeof buffer) > 0) {
    }
    close(fd);
  }
}

// Processes that read 48 MiB of page cache through a limit of 16.
class Stalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
    auto opened = watch_stalls({});
    if (!opened) GTEST_SKIP() << opened.error().what;
    watch_ = std::move(*opened);
    file_ = "build/headroom-test-stall-" + std::to_string(getpid());
    std::filesystem::create_directories("build");
    std::ofstream(file_) << std::string(48 << 20, 'x');
    // Cached by us so far, and so charged to us: out of the cache with it.
    const int fd = open(file_.c_str(), O_RDONLY);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
  void TearDown() override {
    if (!file_.empty()) std::filesystem::remove(file_);
  }
  void read_in(TestCgroup& cgroup) {
    const Limit limit(cgroup, "memory", {"memory.max", "16M"}, {"memory.limit_in_bytes", "16M"});
    ASSERT_TRUE(limit) << "no memory controller";
    const pid_t reader = cgroup.spawn([&] {
      limit.enter();
      read_rounds(file_, 2);
    });
    EXPECT_EQ(wait_for(reader, 60'000), std::optional(0));
  }

  std::unique_ptr<StallWatch> watch_;
  std::string file_;
};

TEST_F(Stalls, ReclaimForItsOwnLimitIsTheLimitsDoing) {
  TestCgroup cgroup("limit");
  const hr_stalls before = watch_->node();
  read_in(cgroup);
  const auto stalls = stalls_of(*watch_, cgroup.id());
  const hr_stalls after = watch_->node();
  ASSERT_TRUE(stalls) << "nothing was charged to the reader's cgroup";
  const hr_waits& limit = stalls->causes[HR_STALL_LIMIT];
  EXPECT_GT(limit.count, 20u) << "tens of pages at a time";
  EXPECT_GT(limit.ns, 0u);
  EXPECT_EQ(in_buckets(limit), limit.count);
  EXPECT_EQ(stalls->causes[HR_STALL_GLOBAL].count, 0u) << "the node was not short of anything";
  EXPECT_GE(after.causes[HR_STALL_LIMIT].ns - before.causes[HR_STALL_LIMIT].ns, limit.ns);
  EXPECT_EQ(watch_->lost(), 0u);
}

TEST_F(Stalls, AGoneCgroupLeavesNothingBehind) {
  CgroupId id;
  {
    TestCgroup cgroup("gone");
    id = cgroup.id();
    read_in(cgroup);
    EXPECT_TRUE(stalls_of(*watch_, id));
  }
  EXPECT_FALSE(stalls_of(*watch_, id));
}

TEST_F(Stalls, AFullMapIsCounted) {
  auto small = watch_stalls({.capacity = 1, .more_capacity = 1});
  ASSERT_TRUE(small) << small.error().what;
  TestCgroup one("one");
  TestCgroup two("two");
  TestCgroup three("three");
  read_in(one);
  read_in(two);
  EXPECT_EQ((*small)->lost(), 0u);
  read_in(three);
  EXPECT_TRUE(stalls_of(**small, one.id()));
  EXPECT_TRUE(stalls_of(**small, two.id())) << "beyond the first map";
  EXPECT_FALSE(stalls_of(**small, three.id()));
  two.remove();
  EXPECT_FALSE(stalls_of(**small, two.id()));
  EXPECT_GT((*small)->lost(), 0u);
  EXPECT_EQ((*small)->read()->lost, (*small)->lost());
  EXPECT_EQ(watch_->lost(), 0u) << "each watch has its own";
}

// The CPUs that this process may use, at most `count`.
std::vector<int> usable_cpus(std::size_t count) {
  cpu_set_t all;
  CPU_ZERO(&all);
  sched_getaffinity(0, sizeof all, &all);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < count; ++cpu)
    if (CPU_ISSET(cpu, &all)) cpus.push_back(cpu);
  return cpus;
}

TEST(Throttles, QueuesThatWaitTogetherAreOneWaitOfTheCgroup) {
  if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  const std::vector<int> cpus = usable_cpus(2);
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  TestCgroup cgroup("throttle-two");
  Limit limit(cgroup, "cpu", {"cpu.max", "20000 100000"}, {"cpu.cfs_quota_us", "20000"});
  ASSERT_TRUE(limit) << "no CPU controller";
  auto opened = watch_throttles({.hierarchy = limit.hierarchy()});
  if (!opened) GTEST_SKIP() << opened.error().what;
  const auto begun = std::chrono::steady_clock::now();
  for (const int cpu : cpus)
    cgroup.spawn([&, cpu] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      limit.enter();
      for (;;)
        asm volatile("");
    });
  pass_time(2000);
  const auto read = (*opened)->read();
  ASSERT_TRUE(read) << read.error().what;
  const hr_throttles* throttles = read->find(limit.id().value);
  ASSERT_TRUE(throttles);
  const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - begun;
  EXPECT_GT(throttles->any_ns, 800'000'000u);
  EXPECT_LE(throttles->any_ns, static_cast<std::uint64_t>(passed.count()));
  EXPECT_GT(throttles->waits.ns, throttles->any_ns + throttles->any_ns / 2);
}

TEST(Throttles, AQuotaIsWaitedForInItsCgroupAndNowhereElse) {
  if (!writable_cgroup2()) GTEST_SKIP() << "no writable cgroup v2";
  TestCgroup cgroup("throttle");
  Limit limit(cgroup, "cpu", {"cpu.max", "10000 100000"}, {"cpu.cfs_quota_us", "10000"});
  ASSERT_TRUE(limit) << "no CPU controller";
  auto opened = watch_throttles({.hierarchy = limit.hierarchy()});
  if (!opened) GTEST_SKIP() << opened.error().what;
  ThrottleWatch& watch = **opened;

  cgroup.spawn([&] {
    limit.enter();
    for (;;)
      asm volatile("");
  });
  pass_time(1500);
  auto read = watch.read();
  ASSERT_TRUE(read) << read.error().what;
  const hr_throttles* throttles = read->find(limit.id().value);
  ASSERT_TRUE(throttles);
  const hr_waits* waits = &throttles->waits;
  // A tenth of a CPU: nine tenths of the time are waited for, in steps of about 90 ms.
  EXPECT_GT(waits->ns, 800'000'000u);
  EXPECT_LT(waits->ns, 1'600'000'000u);
  EXPECT_GE(waits->count, 8u);
  EXPECT_EQ(in_buckets(*waits), waits->count);
  EXPECT_GE(watch.node().waits.ns, waits->ns);
  // One process: never two queues at a time.
  EXPECT_GT(throttles->any_ns, waits->ns - 100'000'000);
  EXPECT_LE(throttles->any_ns, waits->ns);

  cgroup.remove();
  limit.remove();
  EXPECT_EQ(watch.read()->find(limit.id().value), nullptr) << "a gone cgroup leaves nothing behind";
}

}  // namespace
}  // namespace headroom::observe
