// SPDX-License-Identifier: Apache-2.0
// A child of the test without the privilege to trace other processes.
#pragma once

#include <functional>

namespace headroom::test {

// Runs `check` in a child without CAP_SYS_PTRACE. 0: it returned true; 1: false; else the child
// could not give the capability up.
int check_without_ptrace(const std::function<bool()>& check);

}  // namespace headroom::test
