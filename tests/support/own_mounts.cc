// SPDX-License-Identifier: Apache-2.0
#include "support/own_mounts.h"

#include "support/test_cgroup.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace headroom::test {
namespace {

constexpr int kNoMounts = 100;

}  // namespace

std::optional<int> with_own_mounts(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool own = ::unshare(CLONE_NEWNS) == 0 &&
                     ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    ::_exit(own ? body() : kNoMounts);
  }
  const auto status = wait_for(child, 60'000);
  EXPECT_TRUE(status && WIFEXITED(*status)) << "it crashed, or does not end";
  if (!status || WEXITSTATUS(*status) == kNoMounts) return std::nullopt;
  return WEXITSTATUS(*status);
}

bool mount_read_only(const std::filesystem::path& file) {
  const char* const path = file.c_str();
  return ::mount(path, path, nullptr, MS_BIND, nullptr) == 0 &&
         ::mount("none", path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

bool mount_writable_again(const std::filesystem::path& file) {
  return ::umount2(file.c_str(), MNT_DETACH) == 0;
}

}  // namespace headroom::test
