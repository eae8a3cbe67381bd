// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error that says what we were doing when it failed.
//
// Expected failures travel as Result; bugs are asserts; nothing of ours throws. The alias hides
// tl::expected because std::expected needs C++23 in g++ 12; the day that changes is this one line.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace headroom {

struct Error {
  std::string what;  // "open cgroup.kill of web.slice: No such file or directory"
  int code = 0;      // errno where the kernel gave one, else 0
};

template <class T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string what, int code = 0) {
  return tl::make_unexpected(Error{std::move(what), code});
}

// "doing: strerror(code)", said once, where the call failed.
inline tl::unexpected<Error> errno_failure(std::string_view doing, int code) {
  return failure(std::string(doing) + ": " + std::strerror(code), code);
}

}  // namespace headroom
