// SPDX-License-Identifier: Apache-2.0
#include "kube/scheduling/batch_resources.h"

#include <algorithm>

namespace headroom::kube {
namespace {

// Whole steps of the capacity, rounded down.
std::int64_t in_steps(std::int64_t amount, std::int64_t capacity) {
  const auto step = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(capacity) * BatchOffer::kStep));
  return std::clamp<std::int64_t>(amount, 0, std::max<std::int64_t>(0, capacity)) / step * step;
}

}  // namespace

void CpuPeak::add(std::optional<MilliCpu> used, Instant at) {
  if (minute_began_ == Instant{}) minute_began_ = at;
  if (at - minute_began_ >= kMinute) {
    // A minute without a sample is none: what is older than the hour must go all the same.
    if (count_ > 0) minutes_.push_back(sum_ / count_);
    if (minutes_.size() > kWindow) minutes_.pop_front();
    if (at - minute_began_ >= kWindow * kMinute) minutes_.clear();
    sum_ = count_ = 0;
    minute_began_ = at;
  }
  if (!used) return;
  sum_ += used->count;
  ++count_;
}

std::optional<MilliCpu> CpuPeak::peak() const {
  if (minutes_.size() < kLeast) return std::nullopt;
  return MilliCpu{*std::max_element(minutes_.begin(), minutes_.end())};
}

void BatchOffer::retract(Instant at) {
  retracted_until_ = at + kRetractTime;
  if (amount_ == 0) return;
  amount_ = 0;
  changed_at_ = at;
}

void BatchOffer::update(std::optional<std::int64_t> left, std::int64_t capacity, bool needed,
                        Instant at) {
  if (needed) return retract(at);
  if (!left || is_retracted(at)) return;
  const std::int64_t wanted = in_steps(*left, capacity);
  // Less is offered as soon as it is a whole step less, more only after a while.
  const bool grows = wanted > amount_;
  if (wanted == amount_ || (grows && changed_at_ != Instant{} && at - changed_at_ < kGrowPeriod))
    return;
  amount_ = wanted;
  changed_at_ = at;
}

void BatchResources::update(const std::optional<NodeSignals>& signals, Instant at) {
  if (!signals) {
    if (answered_at_ && at - *answered_at_ > kSilence) {
      memory_.retract(at);
      cpu_.retract(at);
    }
    return;
  }
  answered_at_ = at;
  const bool hard = signals->hard_threshold.has_value();
  const auto contended = [&](std::optional<double> share) { return share >= contention_; };
  memory_.update(signals->batch_memory ? std::optional(signals->batch_memory->count) : std::nullopt,
                 signals->memory_capacity.value_or(Bytes{}).count,
                 hard || contended(signals->memory_contention), at);
  peak_.add(signals->cpu_used, at);
  const std::int64_t capacity = signals->cpu_capacity.value_or(MilliCpu{}).count;
  std::optional<std::int64_t> left;
  if (const auto peak = peak_.peak(); peak && signals->cpu_capacity)
    left = capacity - peak->count -
           static_cast<std::int64_t>(kCpuMargin * static_cast<double>(peak->count));
  cpu_.update(left, capacity, hard || contended(signals->cpu_contention), at);
}

}  // namespace headroom::kube
