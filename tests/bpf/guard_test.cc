// SPDX-License-Identifier: Apache-2.0
// The guard on the kernel at hand: it wakes when memory has been taken, and only then.
#include "observe/bpf/memory_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace headroom::observe {
namespace {

using namespace std::chrono_literals;
using namespace headroom::literals;

// Touched, so that it is in the working set.
class Taken {
 public:
  explicit Taken(Bytes size) : size_(static_cast<std::size_t>(size.count)) {
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() { ::munmap(memory_, size_); }

 private:
  std::size_t size_;
  void* memory_;
};

// Memory of the kernel alone: pipes that are full, of a MiB each.
class FullPipes {
 public:
  explicit FullPipes(std::size_t count) {
    const std::string text(std::size_t{1} << 20, 'x');
    for (std::size_t i = 0; i < count; ++i) {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
      ends_.insert(ends_.end(), ends.begin(), ends.end());
      EXPECT_GE(::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
      EXPECT_EQ(::write(ends[1], text.data(), text.size()), 1 << 20);
    }
  }
  FullPipes(const FullPipes&) = delete;
  FullPipes& operator=(const FullPipes&) = delete;
  ~FullPipes() {
    for (const int end : ends_)
      ::close(end);
  }

 private:
  std::vector<int> ends_;
};

void allow_all_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class Guard : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = MemoryGuard::open({});
    ASSERT_TRUE(opened) << opened.error().what;
    guard_ = std::move(*opened);
  }
  bool wakes_within(std::chrono::milliseconds time) const {
    pollfd ready{.fd = guard_->descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, static_cast<int>(time.count())) == 1;
  }
  // Others on this machine give memory back meanwhile: it is taken again, up to eight times.
  bool wakes_while(const std::function<void()>& take) const {
    for (int time = 0; time < 8; ++time) {
      take();
      if (wakes_within(250ms)) return true;
    }
    return false;
  }

  // As fast as no machine is: it looks at its floor.
  const MemoryGuard::Pace pace_{
      .bytes_per_second = std::int64_t{1} << 50, .floor = 1ms, .ceiling = 1s};
  std::unique_ptr<MemoryGuard> guard_;
};

TEST_F(Guard, WakesOnceWhatWasLeftIsTaken) {
  guard_->arm(1_GiB, pace_);
  const Taken some(256_MiB);
  EXPECT_FALSE(wakes_within(50ms)) << "three quarters are left";
  EXPECT_GE(guard_->checks(), 10u);
  std::deque<Taken> rest;
  ASSERT_TRUE(wakes_while([&] { rest.emplace_back(1_GiB); }));
  EXPECT_EQ(guard_->drain(), 1u);
  EXPECT_EQ(guard_->wakeups(), 1u);
  const Taken more(64_MiB);
  EXPECT_FALSE(wakes_within(50ms)) << "asked for once";
  EXPECT_EQ(guard_->lost() + guard_->arm_failures(), 0u);
}

// In neither anon nor file: what is available falls, the working set does not grow.
TEST_F(Guard, WakesForMemoryThatTheKernelHolds) {
  allow_all_descriptors();
  guard_->arm(256_MiB, pace_);
  const Bytes before = guard_->latest_look().available;
  const FullPipes some(100);
  EXPECT_FALSE(wakes_within(50ms)) << "more than half is left";
  std::deque<FullPipes> rest;
  ASSERT_TRUE(wakes_while([&] { rest.emplace_back(200); }));
  EXPECT_GE(before.count - guard_->latest_look().available.count, (250_MiB).count);
}

TEST_F(Guard, CountsFromWhenItWasAskedLast) {
  guard_->arm(64_MiB, pace_);
  guard_->arm(64_GiB, pace_);
  const Taken memory(256_MiB);
  EXPECT_FALSE(wakes_within(50ms));
  guard_->arm(Bytes{1}, pace_);
  std::deque<Taken> more;
  EXPECT_TRUE(wakes_while([&] { more.emplace_back(256_MiB); }));
}

TEST_F(Guard, LooksNoMoreOnceItStandsDown) {
  guard_->arm(16_MiB, pace_);
  guard_->disarm();
  const Taken memory(256_MiB);
  const auto checks = guard_->checks();
  EXPECT_FALSE(wakes_within(50ms));
  EXPECT_EQ(guard_->checks(), checks);
}

TEST_F(Guard, LooksSeldomWhileMuchIsLeft) {
  guard_->arm(64_GiB, {.bytes_per_second = std::int64_t{1} << 30, .floor = 1ms, .ceiling = 1s});
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(guard_->checks(), 0u) << "the ceiling is a second";
}

}  // namespace
}  // namespace headroom::observe
