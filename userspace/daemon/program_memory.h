// SPDX-License-Identifier: Apache-2.0
// The code that the loop executes is kept in memory, so that a decision and a kill wait for no
// disk. A page that was never used is not in memory by itself: the first eviction of a daemon is
// the first use of much of its code, and the node is short of memory then.
#pragma once

#include <headroom/result.h>

#include <array>
#include <span>
#include <string_view>

namespace headroom::daemon {

// The libraries that the loop executes from its start to a kill, by how their files' names begin.
inline constexpr std::array<std::string_view, 7> kLoopLibraries{
    "ld-linux", "libbpf.", "libc.", "libgcc_s.", "libm.", "libstdc++.", "libsystemd."};

// Reads every page of the program and of these of its libraries into memory; mlockall() keeps them
// there. Errors: those of madvise(2) with MADV_POPULATE_READ, EINVAL before Linux 5.14; as much as
// possible was read then.
Result<> read_program_into_memory(std::span<const std::string_view> libraries);

}  // namespace headroom::daemon
