// SPDX-License-Identifier: Apache-2.0
// For callbacks of C libraries and for threads: an exception that leaves one ends the process.
#pragma once

#include "base/log/journal.h"

#include <exception>
#include <string_view>

namespace headroom::log {

// False: it threw, which is logged.
template <typename Function>
bool log_exceptions(std::string_view doing, Function&& function) noexcept {
  try {
    function();
    return true;
  } catch (const std::exception& thrown) {
    write_formatted(Level::err, "{}: {}", fmt::make_format_args(doing, thrown.what()));
  } catch (...) {
    write_formatted(Level::err, "{}: unknown exception", fmt::make_format_args(doing));
  }
  return false;
}

}  // namespace headroom::log
