// SPDX-License-Identifier: Apache-2.0
// Crash points: work that ends, as if by kill -9, just before its first, second, … write.
#pragma once

#include <functional>

namespace headroom::test {

struct CrashPoints {
  std::function<void()> prepare;  // before each run, in this process
  std::function<void()> work;     // in a child process, which may have threads
  std::function<void()> check;    // after the child's end, in this process
};

// Runs `work` as often as it changes files, and once to its end: in the run number n the child is
// killed on entry to its system call number n that writes, creates, renames, removes or truncates a
// file. Returns how many there were; -1: ptrace() is not possible here.
int crash_at_every_write(const CrashPoints& points);

}  // namespace headroom::test
