// SPDX-License-Identifier: Apache-2.0
// A process that has given up privileges, as a container's has, and what a process may do.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace headroom::test {

struct Reduced {
  std::uint64_t bounding = 0;  // the capabilities that stay in the bounding set
  uid_t uid = 0;
  bool filtered = false;  // by seccomp, which allows everything
};

// In a child process: works in `directory`, gives the rest up and sleeps for a minute.
[[noreturn]] void sleep_reduced(const Reduced& how, const std::filesystem::path& directory);

// The lines of a status file that say what a process may do.
std::string privileges_in(const std::filesystem::path& status);

// The whole file; empty: it cannot be read.
std::string text_of(const std::filesystem::path& file);

}  // namespace headroom::test
