// SPDX-License-Identifier: Apache-2.0
// load_former(): the original values that an earlier daemon left in a state file.
#pragma once

#include "base/log/journal.h"
#include "base/state/state_file.h"

#include <string_view>
#include <utility>

namespace headroom::daemon {

// Empty if there are none, or if the file cannot be read, which is logged. `what`: "values of
// cpu.idle".
template <class Found>
Found load_former(const state::StateFile<Found>& file, std::string_view what) {
  auto found = file.load();
  if (found) return std::move(*found);
  log::error("{}: the original {} are not known", found.error().what, what);
  return {};
}

}  // namespace headroom::daemon
