// SPDX-License-Identifier: Apache-2.0
// HeldCgroupMutex: the kernel's cgroup_mutex, held for as long as the test wants by a thread that
// sleeps.
#pragma once

#include "base/file_io.h"

#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

struct cgroup_mutex_bpf;

namespace headroom::test {

class HeldCgroupMutex {
 public:
  // Then it is let go, so that a test that waits for it ends, and fails.
  static constexpr std::chrono::seconds kLongest{20};

  // Returns once the mutex is held. An error: this kernel does not load the program, or has no
  // userfaultfd.
  static Result<std::unique_ptr<HeldCgroupMutex>> hold(const std::string& cgroup);
  ~HeldCgroupMutex();
  HeldCgroupMutex(const HeldCgroupMutex&) = delete;
  HeldCgroupMutex& operator=(const HeldCgroupMutex&) = delete;

  bool is_held() const { return !read_; }
  void let_go();

 private:
  HeldCgroupMutex() = default;
  Result<> start(const std::string& cgroup);
  Result<> make_missing_page();
  void give_page() const;

  cgroup_mutex_bpf* program_ = nullptr;
  Fd faults_;  // a userfaultfd
  void* page_ = nullptr;
  std::atomic<bool> read_ = false;  // the iterator's read() has returned
  std::thread reader_;
  std::jthread limit_;
};

}  // namespace headroom::test
