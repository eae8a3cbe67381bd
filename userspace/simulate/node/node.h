// SPDX-License-Identifier: Apache-2.0
// Node: a simulated node: its pods, the memory each holds at any moment, and what ends them.
//
// Memory changes evenly between two events, so the moment at which a level is reached is computed,
// not searched for. An event is: a pod's use takes another course, a pod ends, starts again or has
// exited, a level is crossed, the kernel is out of memory, or the agent looks.
#pragma once

#include "simulate/workload/pod_plan.h"

#include <headroom/judge.h>
#include <headroom/pod.h>
#include <headroom/signal.h>
#include <headroom/units.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headroom::simulate {

inline constexpr Instant kNever = Instant::max();

// A kill is over after this, and this for each GiB that the processes held.
inline constexpr Duration kExit = std::chrono::milliseconds(100);
inline constexpr Duration kExitPerGiB = std::chrono::milliseconds(80);
// What the kernel keeps free: with less it has no page left to give.
inline constexpr Bytes kKernelReserve{std::int64_t{64} << 20};

struct NodeShape {
  Bytes capacity{std::int64_t{64} << 30};
  Bytes system{std::int64_t{2} << 30};  // in use by the kernel and the node's own programs
  Bytes allocatable{std::int64_t{61} << 30};
  std::int64_t milli_cpu = 16'000;
  std::int64_t max_pods = 110;
  // The value of the first hard threshold of memory.available; zero: none.
  Bytes hard_threshold{std::int64_t{100} << 20};
};

// Why a pod was ended early.
enum class End : std::uint8_t {
  kEvicted,
  kKernelOom,  // the node had no memory left, and the kernel chose it
  kOwnLimit,   // it reached its own memory limit
};

// What every step reads of every pod comes first, in one cache line.
struct alignas(64) SimulatedPod {
  enum class Phase : std::uint8_t {
    kRunning,
    kTerminating,  // SIGTERM was sent; it exits by itself at `phase_ends`
    kExiting,      // its processes end; its memory is free at `phase_ends`
    kBackOff,      // its container starts again at `phase_ends`
  };
  Phase phase = Phase::kRunning;
  bool evicted = false;  // it leaves the node when its processes have ended
  std::uint8_t restarts = 0;
  Instant ends = kNever;  // by itself
  Instant phase_ends = kNever;
  // Its working set was `level` at `since`, and changes by `slope` until `until`. Before `since` it
  // changed evenly from `level_before` at `since_before`.
  Instant since, until;
  double level = 0, slope = 0;  // bytes, bytes per nanosecond
  double cache_share = 0;       // of its working set: active page cache; a reclaim changes it
  Instant since_before;
  double level_before = 0;
  PodPlan plan;
  CgroupId cgroup;
  Instant placed;                          // on this node
  Instant started;                         // of this run
  std::optional<double> high;              // memory.high, set by the ladder
  std::shared_ptr<const Pod> description;  // made when it is needed

  // When it changes next, if nothing else happens.
  Instant changes() const { return std::min({until, ends, phase_ends}); }
  bool uses_memory() const { return phase != Phase::kBackOff; }
  bool may_be_evicted() const { return phase == Phase::kRunning && !evicted; }
  double level_at(Instant at) const;
  // Of the processes: all but page cache.
  double held_at(Instant at) const { return level_at(at) * (1 - cache_share); }
};

struct FleetEvent {
  enum class Kind : std::uint8_t {
    kEvicted,    // an agent decided it
    kKernelOom,  // the kernel killed it for the node's shortage
    kOwnLimit,
    kFinished,  // it ended by itself
    kGone,      // an evicted pod has left the node: `plan` is what replaces it
  };
  Kind kind{};
  Instant at;
  std::uint32_t node = 0;
  std::int64_t milli_cpu = 0;  // the pod's requests, which are free from now on: kFinished,
  Bytes memory_request;        // kGone
  QosClass qos = QosClass::kBestEffort;
  std::unique_ptr<PodPlan> plan{};  // kGone
};

// Counts and sums over a node's time.
struct NodeTotals {
  std::uint64_t evictions = 0;
  // Of the evictions: the signal was above its threshold, or earlier victims would have released
  // enough.
  std::uint64_t unneeded = 0;
  // Of the evictions and the kernel's kills: another pod was first by the kubelet's ranking.
  std::uint64_t wrong_victims = 0, wrong_kernel_victims = 0;
  std::uint64_t within_request = 0;  // victims that used no more than their request
  std::uint64_t kernel_ooms = 0, own_limit_ooms = 0, finished = 0;
  std::uint64_t shortages = 0;          // times the signal fell below the hard threshold
  double work_lost = 0;                 // CPU seconds of jobs that start anew
  double below_threshold = 0;           // seconds
  double used = 0;                      // byte seconds
  double lowest_available = 0x1p62;     // bytes
  std::vector<Duration> latencies{};    // from a shortage's begin to the agent's first decision
  std::uint64_t looks = 0, sweeps = 0;  // of the agent

  void add(const NodeTotals& other);
};

class Node;

// What an agent reuses from one look to the next, one for each thread.
struct Scratch {
  Verdict verdict;
  std::vector<hr_record> records;
  std::vector<PodReading> readings;
  std::vector<Candidate> candidates;
  std::vector<Outcome> outcomes;
  std::vector<std::size_t> due;  // nodes
};

// What watches a node and evicts pods.
class Agent {
 public:
  virtual ~Agent() = default;
  // When it must look next, if the node's memory takes the course that is known now.
  virtual Instant next_look(const Node& node) const = 0;
  virtual void look(Node& node, Scratch& scratch) = 0;
  virtual bool has_memory_pressure(Instant at) const = 0;
  // See Node::prefetch().
  virtual void prefetch() const {}
  // No looks follow.
  virtual void end(Instant) {}
};

class Node {
 public:
  Node(std::uint32_t index, const NodeShape& shape, std::unique_ptr<Agent> agent);

  // Ask the processor for what advance() reads, so that it comes while other nodes advance: the
  // node, and then what every step reads of its pods.
  void prefetch() const;
  void prefetch_pods() const;
  // Before `until` exclusive.
  void advance(Instant until, Scratch& scratch);
  Instant next_event() const { return next_; }
  void add_pod(PodPlan plan, Instant at);
  void end(Instant at);

  std::vector<FleetEvent>& events() { return events_; }
  const NodeTotals& totals() const { return totals_; }
  bool has_memory_pressure(Instant at) const { return agent_->has_memory_pressure(at); }

  // For the agent.
  std::uint32_t index() const { return index_; }
  const NodeShape& shape() const { return shape_; }
  Instant now() const { return now_; }
  std::span<const SimulatedPod> pods() const { return pods_; }
  const std::shared_ptr<const Pod>& description(std::size_t pod);
  std::size_t find(CgroupId cgroup) const;  // pods().size(): it is not there
  double pods_working_set(Instant at) const;
  std::int64_t memory_available(Instant at) const;  // as the kubelet computes it, not below zero
  std::int64_t allocatable_available(Instant at) const;
  // When memory.available falls below this, if no event changes its course; now, if it is below.
  Instant time_below(double available) const;
  Instant time_allocatable_below(double available) const;
  // When what cannot be reclaimed exceeds this.
  Instant time_held_above(double bytes) const;
  double held(Instant at) const;  // of pods and system

  // SIGKILL now, or SIGTERM now and SIGKILL when the grace is over and evict() is called again.
  void evict(std::size_t pod, Duration grace);
  void set_high(std::size_t pod, std::optional<double> bytes);
  double reclaim_cache(std::size_t pod, double bytes);
  NodeTotals& totals() { return totals_; }

 private:
  void step(Instant at, Scratch& scratch);
  void integrate(Instant at);
  void update_pod(std::size_t index);
  void take_next_segment(SimulatedPod& pod);
  void start_exit(SimulatedPod& pod, End why);
  void finish_exit(std::size_t index);
  void remove(std::size_t index);
  void kill_by_kernel();
  void judge_victim(std::size_t victim, End why);
  void update_shortage();
  void note_decision();
  void plan();
  FleetEvent event_of(FleetEvent::Kind kind, const SimulatedPod& pod) const;

  const std::uint32_t index_;
  const NodeShape shape_;
  std::unique_ptr<Agent> agent_;
  std::vector<SimulatedPod> pods_;
  std::vector<FleetEvent> events_;
  NodeTotals totals_;
  Instant now_, next_, oom_at_ = kNever, look_at_ = kNever;
  std::uint64_t next_cgroup_ = 100;
  // Sums over the pods at now_, and their slopes until next_.
  double working_set_ = 0, slope_ = 0, held_ = 0, held_slope_ = 0;
  std::optional<Instant> short_since_;
  bool decided_ = false;  // in this shortage
};

}  // namespace headroom::simulate
