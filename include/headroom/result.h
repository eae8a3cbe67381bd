// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error that says what failed.
//
// Expected failures are returned as Result; bugs are asserts; headroom's code does not throw. The
// alias hides tl::expected: std::expected needs C++23, which g++ 12 lacks.
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

// "doing: strerror(code)", made where the call failed.
inline tl::unexpected<Error> errno_failure(std::string_view doing, int code) {
  return failure(std::string(doing) + ": " + std::strerror(code), code);
}

}  // namespace headroom
