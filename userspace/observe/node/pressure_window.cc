// SPDX-License-Identifier: Apache-2.0
#include "observe/node/pressure_window.h"

#include <algorithm>

namespace headroom::observe {
namespace {

std::uint64_t node_wide(const hr_stalls& stalls) {
  std::uint64_t ns = 0;
  for (const hr_stall_cause cause : kNodeWideCauses)
    ns += stalls.causes[cause].ns;
  return ns;
}

}  // namespace

// The newest sample that is a window old; those before it are dropped.
const PressureWindow::Sample* PressureWindow::oldest_needed(Instant at) {
  const auto nth = [&](std::size_t i) -> Sample& {
    return samples_[(first_ + i) % samples_.size()];
  };
  while (count_ > 1 && at - nth(1).at >= window_) {
    first_ = (first_ + 1) % samples_.size();
    --count_;
  }
  return count_ > 0 && at - nth(0).at >= window_ ? &nth(0) : nullptr;
}

std::optional<Observation> PressureWindow::add(Instant at, const hr_stalls* node) {
  if (!node) {
    count_ = 0;
    return std::nullopt;
  }
  const std::uint64_t now = node_wide(*node);
  std::optional<Observation> seen;
  if (const Sample* then = oldest_needed(at)) {
    const double had =
        std::chrono::duration<double>(at - then->at).count() * static_cast<double>(cpus_);
    const double lost = std::min(1.0, static_cast<double>(now - then->ns) / 1e9 / had);
    seen = Observation{.available = kWhole - static_cast<std::int64_t>(lost * kWhole),
                       .capacity = kWhole,
                       .at = at};
  }
  const bool due = count_ == 0 || at - samples_[(first_ + count_ - 1) % samples_.size()].at >=
                                      window_ / static_cast<std::int64_t>(kSteps);
  if (due && count_ < samples_.size()) {
    samples_[(first_ + count_) % samples_.size()] = {at, now};
    ++count_;
  }
  return seen;
}

}  // namespace headroom::observe
