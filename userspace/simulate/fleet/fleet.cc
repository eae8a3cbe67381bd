// SPDX-License-Identifier: Apache-2.0
#include "simulate/fleet/fleet.h"

#include "simulate/fleet/node_placement.h"
#include "simulate/fleet/shard_threads.h"
#include "simulate/node/headroom_agent.h"
#include "simulate/node/rival_agents.h"
#include "simulate/workload/random.h"

#include <headroom/shadow.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace headroom::simulate {
namespace {

using Kind = FleetEvent::Kind;

constexpr std::size_t kSamples = 480;
// Pods that fit on no node are tried again this often, so many of them at a time.
constexpr Duration kRetryPeriod = std::chrono::seconds(5);
constexpr std::size_t kRetries = 200;

// The Job controller's: ten seconds, doubled with each failure, at most six minutes.
Duration back_off(std::uint8_t failures) {
  constexpr Duration kFirst = std::chrono::seconds(10), kLongest = std::chrono::minutes(6);
  const int doublings = std::clamp<int>(failures - 1, 0, 6);
  return std::min(kFirst * (std::int64_t{1} << doublings), kLongest);
}

// A pod that ran before the simulation began, for whose memory no node has room: it begins with
// none.
void start_anew(PodPlan& plan) {
  if (plan.model.burst_rate > 0) plan.model.burst_at -= plan.age_at_arrival;
  plan.age_at_arrival = Duration::zero();
}

struct PendingPod {
  PodPlan plan;
  Instant since;  // when it was created, or when the pod that it replaces ended
  Instant not_before;
  bool replaces = false;
};

class Fleet {
 public:
  Fleet(const FleetOptions& options, const std::vector<PodPlan>& workload)
      : options_(options),
        workload_(workload),
        placement_(std::vector<Placement::NodeSums>(
            options.nodes, {.milli_cpu = options.shape.milli_cpu,
                            .memory = options.shape.allocatable.count,
                            .max_pods = options.shape.max_pods,
                            .unused_memory = (options.shape.capacity - options.shape.system -
                                              options.shape.hard_threshold)
                                                 .count})),
        next_event_(options.nodes, kNever),
        has_events_(options.nodes, 0),
        threads_(options.threads, options.nodes) {
    nodes_.reserve(options.nodes);
    for (std::uint32_t i = 0; i < options.nodes; ++i)
      nodes_.push_back(std::make_unique<Node>(i, options.shape, make_agent(i)));
    result_.agent = options.agent;
  }

  FleetResult run() {
    const Instant end = Instant{} + options_.length;
    const Duration sample_period =
        std::max<Duration>(options_.length / kSamples, kSchedulingPeriod);
    Instant next_sample{};
    for (Instant now{}; now < end; now += kSchedulingPeriod) {
      schedule(now);
      if (now >= next_sample) {
        sample(now);
        next_sample += sample_period;
      }
      advance(std::min(now + kSchedulingPeriod, end));
    }
    return finish(end);
  }

 private:
  std::unique_ptr<Agent> make_agent(std::uint32_t node) {
    Random random(node, options_.seed + 7);
    const Duration phase(
        static_cast<std::int64_t>(random.uniform() * static_cast<double>(kKubeletPeriod.count())));
    switch (options_.agent) {
      case AgentKind::kHeadroom:
        return std::make_unique<HeadroomAgent>(
            options_.policy, options_.recorded_node == node ? &result_.recording : nullptr,
            options_.every_check);
      case AgentKind::kKubelet:
        return std::make_unique<KubeletAgent>(options_.policy, phase);
      case AgentKind::kKoordinator:
        return std::make_unique<KoordinatorAgent>(options_.policy, phase);
      case AgentKind::kNone:
        return std::make_unique<NoAgent>();
    }
    return nullptr;
  }

  // --- the nodes, on all threads
  // ------------------------------------------------------------------

  // Of a large fleet a node is in no cache when its turn comes.
  void prefetch(const std::vector<std::size_t>& due, std::size_t current) const {
    constexpr std::size_t kNode = 8, kPods = 4;  // so many nodes before
    if (current + kNode < due.size()) nodes_[due[current + kNode]]->prefetch();
    if (current + kPods < due.size()) nodes_[due[current + kPods]]->prefetch_pods();
  }

  void advance(Instant until) {
    threads_.run([&](std::size_t begin, std::size_t end, Scratch& scratch) {
      scratch.due.clear();
      for (std::size_t i = begin; i < end; ++i)
        if (next_event_[i] < until) scratch.due.push_back(i);
      for (std::size_t k = 0; k < scratch.due.size(); ++k) {
        prefetch(scratch.due, k);
        const std::size_t i = scratch.due[k];
        nodes_[i]->advance(until, scratch);
        next_event_[i] = nodes_[i]->next_event();
        has_events_[i] = !nodes_[i]->events().empty();
      }
    });
    collect(until);
  }

  // --- the control plane, on one
  // ------------------------------------------------------------------

  void collect(Instant until) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!std::exchange(has_events_[i], std::uint8_t{0})) continue;
      const auto& node = nodes_[i];
      std::move(node->events().begin(), node->events().end(), std::back_inserter(events_));
      node->events().clear();
      note_pressure(*node, until);
    }
    std::stable_sort(events_.begin(), events_.end(), [](const FleetEvent& a, const FleetEvent& b) {
      return a.at != b.at ? a.at < b.at : a.node < b.node;
    });
    for (FleetEvent& event : events_)
      record(event);
    events_.clear();
  }

  void record(FleetEvent& event) {
    if (event.kind == Kind::kFinished || event.kind == Kind::kGone)
      placement_.remove(event.node, event.milli_cpu, event.memory_request);
    else
      result_.incidents.push_back({event.kind, event.at, event.node, event.qos});
    if (event.kind != Kind::kGone) return;
    const Duration delay = event.plan->job ? back_off(event.plan->attempts) : kStartDelay;
    pending_.push_back({std::move(*event.plan), event.at, event.at + delay, true});
  }

  // Nodes under pressure are looked at again until the condition ends.
  void note_pressure(const Node& node, Instant at) {
    if (!node.has_memory_pressure(at)) return;
    placement_.set_memory_pressure(node.index(), true);
    if (std::find(pressed_.begin(), pressed_.end(), node.index()) == pressed_.end())
      pressed_.push_back(node.index());
  }

  void schedule(Instant now) {
    std::erase_if(pressed_, [&](std::uint32_t node) {
      const bool pressed = nodes_[node]->has_memory_pressure(now);
      placement_.set_memory_pressure(node, pressed);
      return !pressed;
    });
    if (options_.agent == AgentKind::kKoordinator && now >= next_report_) offer_batch_memory(now);
    for (; arrived_ < workload_.size() && workload_[arrived_].arrives <= now; ++arrived_)
      pending_.push_back({workload_[arrived_], workload_[arrived_].arrives, now, false});
    if (now >= next_retry_) {
      next_retry_ = now + kRetryPeriod;
      for (std::size_t i = std::min(kRetries, waiting_.size()); i > 0; --i) {
        pending_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
    }
    std::vector<PendingPod> later;
    for (PendingPod& pod : pending_)
      if (pod.not_before > now)
        later.push_back(std::move(pod));
      else
        place(std::move(pod), now);
    pending_ = std::move(later);
  }

  void offer_batch_memory(Instant now) {
    next_report_ = now + KoordinatorAgent::kReportPeriod;
    const double share =
        KoordinatorAgent::kBatchShare * static_cast<double>(options_.shape.capacity.count);
    for (const auto& node : nodes_)
      placement_.set_no_batch_memory(node->index(), node->held(now) >= share);
  }

  void place(PendingPod pod, Instant now) {
    auto node = placement_.place(pod.plan);
    if (!node && pod.plan.age_at_arrival > Duration::zero()) {
      start_anew(pod.plan);
      node = placement_.place(pod.plan);
    }
    if (!node) {
      waiting_.push_back(std::move(pod));
      return;
    }
    const double waited = seconds_of(now - pod.since);
    result_.waited += waited;
    if (pod.replaces && !pod.plan.job) result_.down += waited;
    ++result_.placed;
    nodes_[*node]->add_pod(std::move(pod.plan), now);
    next_event_[*node] = nodes_[*node]->next_event();
  }

  void sample(Instant now) {
    FleetSample sample{.at = now,
                       .nodes_under_pressure = static_cast<std::uint32_t>(pressed_.size())};
    for (const auto& node : nodes_)
      sample.used += node->pods_working_set(now) + static_cast<double>(options_.shape.system.count);
    sample.used /=
        static_cast<double>(options_.shape.capacity.count) * static_cast<double>(options_.nodes);
    result_.samples.push_back(sample);
  }

  FleetResult finish(Instant end) {
    for (const auto& node : nodes_) {
      node->end(end);
      result_.totals.add(node->totals());
    }
    std::sort(result_.totals.latencies.begin(), result_.totals.latencies.end());
    result_.unplaced = waiting_.size() + pending_.size();
    for (const PendingPod& pod : waiting_)
      result_.waited += seconds_of(end - pod.since);
    return std::move(result_);
  }

  const FleetOptions& options_;
  const std::vector<PodPlan>& workload_;
  std::size_t arrived_ = 0;
  Placement placement_;
  FleetResult result_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Instant> next_event_;       // of each node
  std::vector<std::uint8_t> has_events_;  // of each node; bytes, because threads write them
  std::vector<FleetEvent> events_;
  std::vector<PendingPod> pending_;
  std::deque<PendingPod> waiting_;  // fit on no node
  std::vector<std::uint32_t> pressed_;
  Instant next_retry_{}, next_report_{};
  ShardThreads threads_;
};

}  // namespace

FleetResult simulate_fleet(const FleetOptions& options, const std::vector<PodPlan>& workload) {
  return Fleet(options, workload).run();
}

}  // namespace headroom::simulate
