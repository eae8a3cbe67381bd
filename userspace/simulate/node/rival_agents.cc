// SPDX-License-Identifier: Apache-2.0
#include "simulate/node/rival_agents.h"

#include "judge/eviction/rank/rank.h"
#include "judge/eviction/threshold/threshold.h"

#include <headroom/shadow.h>

#include <algorithm>
#include <utility>

namespace headroom::simulate {
namespace {

using std::chrono::seconds;

constexpr Duration kPoll = seconds(1), kCleanupTimeout = seconds(30);
constexpr Duration kHardGrace = seconds(1);  // what the kubelet grants a hard eviction

Instant grid(Instant at, Duration phase, Duration period) {
  const Duration past = at.time_since_epoch() - phase;
  if (past <= Duration::zero()) return Instant(phase);
  return Instant(phase + (past + period - Duration(1)) / period * period);
}

double level_of(const Threshold& threshold, Bytes capacity) {
  return static_cast<double>(resolve(threshold.value, capacity.count));
}

std::optional<Observation> reading(const Node& node, Signal signal) {
  const NodeShape& shape = node.shape();
  if (signal == Signal::kMemoryAvailable)
    return Observation{node.memory_available(node.now()), shape.capacity.count, node.now()};
  if (signal == Signal::kAllocatableMemoryAvailable)
    return Observation{node.allocatable_available(node.now()), shape.allocatable.count, node.now()};
  return std::nullopt;
}

}  // namespace

KubeletAgent::KubeletAgent(std::shared_ptr<const Policy> policy, Duration phase)
    : policy_(std::move(policy)),
      phase_(phase),
      first_observed_(policy_->thresholds.size()),
      was_met_(policy_->thresholds.size()) {}

Instant KubeletAgent::tick_at_or_after(Instant at) const {
  return grid(at, phase_, kKubeletPeriod);
}

Instant KubeletAgent::next_look(const Node& node) const {
  if (awaited_) return next_poll_;
  Instant soonest = kNever;
  for (std::size_t i = 0; i < policy_->thresholds.size(); ++i) {
    const Threshold& threshold = policy_->thresholds[i];
    if (first_observed_[i])
      soonest = node.now();  // to see that it is above again, or past its grace
    if (threshold.signal == Signal::kMemoryAvailable)
      soonest = std::min(soonest, node.time_below(level_of(threshold, node.shape().capacity)));
    if (threshold.signal == Signal::kAllocatableMemoryAvailable)
      soonest = std::min(
          soonest, node.time_allocatable_below(level_of(threshold, node.shape().allocatable)));
  }
  if (soonest == kNever) return kNever;
  return tick_at_or_after(std::max(soonest, last_look_ + Duration(1)));
}

// The first that is past its grace: memory.available before allocatableMemory.available only by the
// order of the configuration, a hard one before a soft one.
std::optional<std::size_t> KubeletAgent::met_threshold(const Node& node) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < policy_->thresholds.size(); ++i) {
    const Threshold& threshold = policy_->thresholds[i];
    const auto seen = reading(node, threshold.signal);
    if (!seen) continue;
    const bool below = headroom::met(threshold, *seen, false) ||
                       (was_met_[i] && headroom::met(threshold, *seen, true));
    if (!below) first_observed_[i].reset();
    if (below && !first_observed_[i]) first_observed_[i] = node.now();
    if (below) last_pressure_ = node.now();
    was_met_[i] = below && node.now() - *first_observed_[i] >= threshold.grace;
    if (was_met_[i] && (!best || (threshold.hard() && !policy_->thresholds[*best].hard())))
      best = i;
  }
  return best;
}

// By the usage of the sample before this look. A pod that was not on the node then has no usage,
// and is first.
std::optional<std::size_t> KubeletAgent::first_of_ranking(const Node& node) const {
  const Instant sampled = tick_at_or_after(node.now()) - kKubeletPeriod;
  std::optional<Candidate> best;
  for (std::uint32_t i = 0; i < node.pods().size(); ++i) {
    const SimulatedPod& pod = node.pods()[i];
    if (pod.evicted) continue;
    Candidate candidate{.pod = i,
                        .usage = {},
                        .request = pod.plan.memory_request.count,
                        .credit = pod.plan.memory_request.count,
                        .priority = pod.plan.priority};
    if (pod.placed <= sampled) candidate.usage = 0;
    if (pod.started <= sampled && pod.uses_memory())
      candidate.usage = static_cast<std::int64_t>(pod.level_at(sampled));
    if (!best || evicts_before(Signal::kMemoryAvailable, candidate, *best)) best = candidate;
  }
  return best ? std::optional<std::size_t>(best->pod) : std::nullopt;
}

void KubeletAgent::evict(Node& node, std::size_t pod, bool hard) {
  awaited_ = node.pods()[pod].cgroup;
  awaited_until_ = node.now() + kCleanupTimeout;
  next_poll_ = node.now() + kPoll;
  // A soft eviction without evictionMaxPodGracePeriod, or with a negative one, is immediate too.
  const Duration soft = std::max<Duration>(policy_->max_pod_grace, kHardGrace);
  node.evict(pod, hard ? kHardGrace : soft);
}

void KubeletAgent::look(Node& node, Scratch&) {
  if (awaited_) {
    const bool gone = node.find(*awaited_) == node.pods().size();
    next_poll_ = node.now() + kPoll;
    if (!gone && node.now() < awaited_until_) return;
    awaited_.reset();
  }
  last_look_ = node.now();
  const auto met = met_threshold(node);
  if (!met) return;
  if (const auto pod = first_of_ranking(node)) evict(node, *pod, policy_->thresholds[*met].hard());
}

bool KubeletAgent::has_memory_pressure(Instant at) const {
  return last_pressure_ && at - *last_pressure_ < policy_->pressure_transition;
}

// --- koordinator ---------------------------------------------------------------------------------

namespace {

constexpr double kThreshold = 0.70, kLower = 0.68;  // of the node's memory
constexpr Duration kPeriod = seconds(1), kCoolDown = seconds(4);

bool is_candidate(const SimulatedPod& pod) {
  return pod.plan.qos == QosClass::kBestEffort && pod.may_be_evicted();
}

}  // namespace

KoordinatorAgent::KoordinatorAgent(std::shared_ptr<const Policy> policy, Duration phase)
    : kubelet_(std::move(policy), phase), phase_(phase % kPeriod) {}

Instant KoordinatorAgent::own_next_look(const Node& node) const {
  const auto& pods = node.pods();
  if (std::none_of(pods.begin(), pods.end(), is_candidate)) return kNever;
  const double level = kThreshold * static_cast<double>(node.shape().capacity.count);
  const Instant crossing = node.time_held_above(level);
  if (crossing == kNever) return kNever;
  return grid(std::max({crossing, not_before_, last_look_ + Duration(1)}), phase_, kPeriod);
}

Instant KoordinatorAgent::next_look(const Node& node) const {
  return std::min(kubelet_.next_look(node), own_next_look(node));
}

void KoordinatorAgent::look(Node& node, Scratch& scratch) {
  if (kubelet_.next_look(node) <= node.now()) kubelet_.look(node, scratch);
  if (own_next_look(node) > node.now()) return;
  last_look_ = node.now();
  evict_best_effort(node);
}

void KoordinatorAgent::evict_best_effort(Node& node) {
  const auto capacity = static_cast<double>(node.shape().capacity.count);
  double excess = node.held(node.now()) - kLower * capacity;
  if (node.held(node.now()) < kThreshold * capacity) return;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < node.pods().size(); ++i)
    if (is_candidate(node.pods()[i])) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const SimulatedPod& first = node.pods()[a];
    const SimulatedPod& second = node.pods()[b];
    if (first.plan.priority != second.plan.priority)
      return first.plan.priority < second.plan.priority;
    const double left = first.held_at(node.now()), right = second.held_at(node.now());
    return left != right ? left > right : a < b;
  });
  for (const std::size_t index : order) {
    if (excess <= 0) break;
    excess -= node.pods()[index].held_at(node.now());
    node.evict(index, Duration::zero());
    not_before_ = node.now() + kCoolDown;
  }
}

}  // namespace headroom::simulate
