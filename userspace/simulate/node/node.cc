// SPDX-License-Identifier: Apache-2.0
#include "simulate/node/node.h"

#include "judge/eviction/rank/rank.h"
#include "judge/oom/oom_score.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headroom::simulate {
namespace {

using std::chrono::seconds;

// The kubelet's delay before a container starts again: ten seconds, doubled each time, at most
// five minutes.
Duration back_off(std::uint8_t restarts) {
  constexpr Duration kFirst = seconds(10), kLongest = std::chrono::minutes(5);
  return std::min(kFirst * (std::int64_t{1} << std::min<std::uint8_t>(restarts, 5)), kLongest);
}

// Slower changes than this cross no level before the next event, as far as one can compute.
constexpr double kStill = 1e-6;  // bytes per nanosecond

// When `left` bytes are used up at this rate; a little later, so that they are.
Instant reached(Instant now, double left, double slope) {
  if (left < 0) return now;
  if (slope < kStill) return kNever;
  constexpr double kMargin = 1000, kFar = 1e18;
  const double after = left / slope + kMargin;
  return after > kFar ? kNever : now + Duration(static_cast<std::int64_t>(after));
}

double count_of(Duration duration) {
  return static_cast<double>(duration.count());
}

Candidate candidate_of(const SimulatedPod& pod, std::uint32_t index, Instant at) {
  return {.pod = index,
          .usage = static_cast<std::int64_t>(pod.level_at(at)),
          .request = pod.plan.memory_request.count,
          .credit = pod.plan.memory_request.count,
          .priority = pod.plan.priority};
}

}  // namespace

double SimulatedPod::level_at(Instant at) const {
  if (at >= since) return level + slope * count_of(at - since);
  if (at <= since_before || since == since_before) return level_before;
  const double share = count_of(at - since_before) / count_of(since - since_before);
  return level_before + (level - level_before) * share;
}

void NodeTotals::add(const NodeTotals& other) {
  evictions += other.evictions;
  unneeded += other.unneeded;
  wrong_victims += other.wrong_victims;
  wrong_kernel_victims += other.wrong_kernel_victims;
  within_request += other.within_request;
  kernel_ooms += other.kernel_ooms;
  own_limit_ooms += other.own_limit_ooms;
  finished += other.finished;
  shortages += other.shortages;
  work_lost += other.work_lost;
  below_threshold += other.below_threshold;
  used += other.used;
  lowest_available = std::min(lowest_available, other.lowest_available);
  latencies.insert(latencies.end(), other.latencies.begin(), other.latencies.end());
  looks += other.looks;
  sweeps += other.sweeps;
}

Node::Node(std::uint32_t index, const NodeShape& shape, std::unique_ptr<Agent> agent)
    : index_(index), shape_(shape), agent_(std::move(agent)) {
  plan();
}

// --- what is read of the node --------------------------------------------------------------------

double Node::pods_working_set(Instant at) const {
  return working_set_ + slope_ * count_of(at - now_);
}

double Node::held(Instant at) const {
  return static_cast<double>(shape_.system.count) + held_ + held_slope_ * count_of(at - now_);
}

std::int64_t Node::memory_available(Instant at) const {
  const auto used = static_cast<std::int64_t>(pods_working_set(at)) + shape_.system.count;
  return std::clamp<std::int64_t>(shape_.capacity.count - used, 0, shape_.capacity.count);
}

std::int64_t Node::allocatable_available(Instant at) const {
  const auto used = static_cast<std::int64_t>(pods_working_set(at));
  return std::clamp<std::int64_t>(shape_.allocatable.count - used, 0, shape_.allocatable.count);
}

Instant Node::time_below(double available) const {
  const double left =
      static_cast<double>((shape_.capacity - shape_.system).count) - working_set_ - available;
  return reached(now_, left, slope_);
}

Instant Node::time_allocatable_below(double available) const {
  return reached(now_, static_cast<double>(shape_.allocatable.count) - working_set_ - available,
                 slope_);
}

Instant Node::time_held_above(double bytes) const {
  return reached(now_, bytes - held(now_), held_slope_);
}

const std::shared_ptr<const Pod>& Node::description(std::size_t pod) {
  if (!pods_[pod].description) pods_[pod].description = describe(pods_[pod].plan);
  return pods_[pod].description;
}

std::size_t Node::find(CgroupId cgroup) const {
  const auto found = std::find_if(pods_.begin(), pods_.end(),
                                  [&](const SimulatedPod& pod) { return pod.cgroup == cgroup; });
  return static_cast<std::size_t>(found - pods_.begin());
}

// --- time ----------------------------------------------------------------------------------------

void Node::prefetch() const {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < sizeof *this; at += kLine)
    __builtin_prefetch(reinterpret_cast<const char*>(this) + at);
}

void Node::prefetch_pods() const {
  for (const SimulatedPod& pod : pods_)
    __builtin_prefetch(&pod);
  agent_->prefetch();
}

void Node::advance(Instant until, Scratch& scratch) {
  while (next_ < until)
    step(next_, scratch);
}

void Node::step(Instant at, Scratch& scratch) {
  integrate(at);
  for (std::size_t i = 0; i < pods_.size();)
    if (const std::size_t count = pods_.size(); pods_[i].changes() <= now_) {
      update_pod(i);
      if (pods_.size() == count) ++i;
    } else {
      ++i;
    }
  plan();
  update_shortage();
  if (oom_at_ <= now_) {
    kill_by_kernel();
    plan();
  }
  if (look_at_ > now_) return;
  ++totals_.looks;
  agent_->look(*this, scratch);
  plan();
}

void Node::integrate(Instant at) {
  const double took = count_of(at - now_);
  const double before = working_set_;
  working_set_ += slope_ * took;
  held_ += held_slope_ * took;
  totals_.used += (before + working_set_) / 2 * took / 1e9;
  if (short_since_) totals_.below_threshold += took / 1e9;
  now_ = at;
}

// The shortage begins when the signal crosses the threshold, which no program sees at once.
void Node::update_shortage() {
  const std::int64_t available = memory_available(now_);
  totals_.lowest_available = std::min(totals_.lowest_available, static_cast<double>(available));
  const bool is_short = available < shape_.hard_threshold.count;
  if (is_short == short_since_.has_value()) return;
  short_since_ = is_short ? std::optional(now_) : std::nullopt;
  decided_ = false;
  if (is_short) ++totals_.shortages;
}

void Node::plan() {
  working_set_ = slope_ = held_ = held_slope_ = 0;
  next_ = kNever;
  bool exiting = false;
  for (const SimulatedPod& pod : pods_) {
    next_ = std::min(next_, pod.changes());
    if (!pod.uses_memory()) continue;
    const double level = pod.level_at(now_);
    working_set_ += level;
    slope_ += pod.slope;
    held_ += level * (1 - pod.cache_share);
    held_slope_ += pod.slope * (1 - pod.cache_share);
    exiting |= pod.phase == SimulatedPod::Phase::kExiting;
  }
  // While a victim exits, the kernel kills no other.
  const double limit = static_cast<double>((shape_.capacity - kKernelReserve).count);
  oom_at_ = exiting ? kNever : time_held_above(limit);
  const auto hard = static_cast<double>(shape_.hard_threshold.count);
  const double below =
      hard - (static_cast<double>((shape_.capacity - shape_.system).count) - working_set_);
  const Instant crossing = short_since_ ? reached(now_, below, -slope_) : time_below(hard);
  look_at_ = agent_->next_look(*this);
  if (crossing > now_) next_ = std::min(next_, crossing);
  next_ = std::max(std::min({next_, oom_at_, look_at_}), now_ + Duration(1));
}

void Node::end(Instant at) {
  integrate(at);
  agent_->end(at);
}

// --- pods ----------------------------------------------------------------------------------------

void Node::add_pod(PodPlan pod_plan, Instant at) {
  integrate(at);
  SimulatedPod& pod = pods_.emplace_back();
  pod.plan = std::move(pod_plan);
  pod.cgroup = CgroupId{next_cgroup_++};
  pod.cache_share = pod.plan.cache_share;
  pod.placed = pod.started = at;
  pod.ends = at + pod.plan.runs;
  pod.since = pod.since_before = at;
  pod.level = pod.level_before = first_level(pod.plan);
  take_next_segment(pod);
  plan();
  update_shortage();
}

void Node::take_next_segment(SimulatedPod& pod) {
  const double level = pod.level_at(now_);
  pod.level_before = pod.level;
  pod.since_before = pod.since;
  pod.level = level;
  pod.since = now_;
  const Duration age = now_ - pod.started + pod.plan.age_at_arrival;
  const Segment segment = next_segment(pod.plan, age, level, now_);
  pod.until = std::max(now_ + (segment.until - age), now_ + Duration(1));
  double target = segment.level;
  if (pod.high) target = std::min(target, std::max(*pod.high, level));
  pod.slope = (target - level) / count_of(pod.until - now_);
  if (!pod.plan.memory_limit) return;
  // The kernel reclaims the pod's page cache before it kills.
  const double limit = static_cast<double>(pod.plan.memory_limit->count) / (1 - pod.cache_share);
  if (target > limit) pod.until = std::min(pod.until, reached(now_, limit - level, pod.slope));
}

bool is_over_limit(const SimulatedPod& pod, Instant at) {
  return pod.plan.memory_limit &&
         pod.held_at(at) > static_cast<double>(pod.plan.memory_limit->count);
}

void Node::update_pod(std::size_t index) {
  SimulatedPod& pod = pods_[index];
  using Phase = SimulatedPod::Phase;
  switch (pod.phase) {
    case Phase::kRunning:
    case Phase::kTerminating:
      if (pod.phase == Phase::kTerminating && pod.phase_ends <= now_)
        return start_exit(pod, End::kEvicted);
      if (pod.ends <= now_) {
        events_.push_back(event_of(FleetEvent::Kind::kFinished, pod));
        ++totals_.finished;
        return remove(index);
      }
      if (is_over_limit(pod, now_)) return start_exit(pod, End::kOwnLimit);
      return take_next_segment(pod);
    case Phase::kExiting:
      return finish_exit(index);
    case Phase::kBackOff:
      pod.phase = Phase::kRunning;
      pod.phase_ends = kNever;
      pod.started = now_;
      pod.level = pod.level_before = first_level(pod.plan);
      pod.since = pod.since_before = now_;
      pod.slope = 0;
      pod.ends = now_ + pod.plan.runs;
      return take_next_segment(pod);
  }
}

// What replaces a pod: a job does all its work again, a service runs as long as it would have. The
// burst is not repeated.
void begin_anew(PodPlan& plan, Instant ends, Instant now) {
  plan.model.burst_rate = 0;
  plan.age_at_arrival = Duration::zero();
  if (plan.job && plan.attempts < 100) ++plan.attempts;
  if (!plan.job) plan.runs = std::max<Duration>(ends - now, seconds(1));
}

void Node::start_exit(SimulatedPod& pod, End why) {
  const double held = pod.held_at(now_);
  const double level = pod.level_at(now_);
  const auto per_gib = static_cast<double>(kExitPerGiB.count()) / 0x1p30;
  const Duration time = kExit + Duration(static_cast<std::int64_t>(held * per_gib));
  pod.level_before = pod.level;
  pod.since_before = pod.since;
  pod.level = level;
  pod.since = now_;
  pod.until = kNever;
  pod.phase = SimulatedPod::Phase::kExiting;
  pod.phase_ends = now_ + time;
  pod.slope = -level / count_of(time);
  if (pod.plan.job)
    totals_.work_lost += seconds_of(now_ - pod.started + pod.plan.age_at_arrival) *
                         static_cast<double>(std::max<std::int64_t>(pod.plan.milli_cpu, 100)) /
                         1000;
  if (why == End::kEvicted) pod.evicted = true;
  if (why == End::kOwnLimit) {
    ++totals_.own_limit_ooms;
    events_.push_back(event_of(FleetEvent::Kind::kOwnLimit, pod));
  }
  begin_anew(pod.plan, pod.ends, now_);
  pod.ends = kNever;
}

void Node::finish_exit(std::size_t index) {
  SimulatedPod& pod = pods_[index];
  if (pod.evicted) {
    FleetEvent gone = event_of(FleetEvent::Kind::kGone, pod);
    gone.plan = std::make_unique<PodPlan>(std::move(pod.plan));
    events_.push_back(std::move(gone));
    return remove(index);
  }
  pod.phase = SimulatedPod::Phase::kBackOff;
  pod.phase_ends = now_ + back_off(pod.restarts);
  pod.level = pod.slope = 0;
  if (pod.restarts < 250) ++pod.restarts;
}

void Node::remove(std::size_t index) {
  pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(index));
}

FleetEvent Node::event_of(FleetEvent::Kind kind, const SimulatedPod& pod) const {
  return {.kind = kind,
          .at = now_,
          .node = index_,
          .milli_cpu = pod.plan.milli_cpu,
          .memory_request = pod.plan.memory_request,
          .qos = pod.plan.qos};
}

// --- what ends pods ------------------------------------------------------------------------------

void Node::note_decision() {
  if (!short_since_ || std::exchange(decided_, true)) return;
  totals_.latencies.push_back(now_ - *short_since_);
}

// Compares the choice with the kubelet's ranking of this instant's readings.
void Node::judge_victim(std::size_t victim, End why) {
  const SimulatedPod& chosen = pods_[victim];
  if (chosen.level_at(now_) <= static_cast<double>(chosen.plan.memory_request.count))
    ++totals_.within_request;
  const Candidate own = candidate_of(chosen, static_cast<std::uint32_t>(victim), now_);
  for (std::uint32_t i = 0; i < pods_.size(); ++i) {
    const SimulatedPod& other = pods_[i];
    if (i == victim || !other.may_be_evicted()) continue;
    if (!evicts_before(Signal::kMemoryAvailable, candidate_of(other, i, now_), own)) continue;
    ++(why == End::kEvicted ? totals_.wrong_victims : totals_.wrong_kernel_victims);
    return;
  }
}

void Node::evict(std::size_t index, Duration grace) {
  SimulatedPod& pod = pods_[index];
  if (pod.phase == SimulatedPod::Phase::kExiting || !pod.uses_memory()) {
    // The kernel killed it before the agent could, which decided all the same.
    if (!pod.evicted) note_decision();
    pod.evicted = true;
    return;
  }
  if (!pod.evicted) {
    note_decision();
    judge_victim(index, End::kEvicted);
    ++totals_.evictions;
    events_.push_back(event_of(FleetEvent::Kind::kEvicted, pod));
    double released = 0;
    for (const SimulatedPod& other : pods_)
      if (other.evicted || other.phase == SimulatedPod::Phase::kExiting)
        released += other.level_at(now_);
    if (static_cast<double>(memory_available(now_)) + released >=
        static_cast<double>(shape_.hard_threshold.count))
      ++totals_.unneeded;
  }
  pod.evicted = true;
  if (grace <= Duration::zero()) return start_exit(pod, End::kEvicted);
  pod.phase = SimulatedPod::Phase::kTerminating;
  pod.phase_ends = now_ + std::min(grace, pod.plan.exit_time);
}

// The kernel kills what has the highest sum of the memory it holds and its adjustment.
void Node::kill_by_kernel() {
  std::size_t worst = pods_.size();
  double most = -0x1p62;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    const SimulatedPod& pod = pods_[i];
    if (!pod.uses_memory() || pod.phase == SimulatedPod::Phase::kExiting) continue;
    const Pod& described = *description(i);
    const int adjustment = oom_score_adj(described, described.containers.front(), shape_.capacity);
    const double score =
        pod.held_at(now_) + adjustment * static_cast<double>(shape_.capacity.count) / 1000;
    if (score <= most) continue;
    most = score;
    worst = i;
  }
  if (worst == pods_.size()) return;
  judge_victim(worst, End::kKernelOom);
  ++totals_.kernel_ooms;
  events_.push_back(event_of(FleetEvent::Kind::kKernelOom, pods_[worst]));
  start_exit(pods_[worst], End::kKernelOom);
}

void Node::set_high(std::size_t index, std::optional<double> bytes) {
  pods_[index].high = bytes;
  if (pods_[index].may_be_evicted()) take_next_segment(pods_[index]);
}

double Node::reclaim_cache(std::size_t index, double bytes) {
  SimulatedPod& pod = pods_[index];
  const double level = pod.level_at(now_);
  const double taken = std::min(bytes, level * pod.cache_share);
  if (!pod.may_be_evicted() || taken <= 0) return 0;
  take_next_segment(pod);
  pod.level -= taken;
  pod.cache_share = pod.level > 0 ? 1 - level * (1 - pod.cache_share) / pod.level : 0;
  return taken;
}

}  // namespace headroom::simulate
