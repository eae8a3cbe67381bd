// SPDX-License-Identifier: Apache-2.0
#include "simulate/workload/generator.h"

#include "simulate/workload/random.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::simulate {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Of the pods that run at any time.
enum Kind : std::uint8_t { kGuaranteed, kBurstableService, kBurstableJob, kBestEffortJob };
constexpr std::array<double, 4> kShares{0.2, 0.4, 0.25, 0.15};
constexpr std::array<bool, 4> kIsJob{false, false, true, true};
constexpr std::array<std::int32_t, 4> kPriorities{1000, 500, 100, 0};
// Services run for days, jobs for minutes to hours: the mean of a log-normal distribution is its
// median times exp(sigma²/2).
constexpr Duration kServiceLife = hours(72), kJobMedian = minutes(20);
constexpr double kJobSigma = 1.2;
// Sizes are drawn from these, and scaled so that all together are requested_share of the fleet.
constexpr std::array<double, 6> kSizes{0.25, 0.5, 1, 2, 4, 8};
constexpr std::array<double, 6> kSizeWeights{0.2, 0.25, 0.25, 0.15, 0.1, 0.05};

Duration span(double count) {
  return duration_cast<Duration>(duration<double>(count));
}

double mean_life(Kind kind) {
  if (!kIsJob[kind]) return seconds_of(kServiceLife);
  return seconds_of(kJobMedian) * std::exp(kJobSigma * kJobSigma / 2);
}

double draw_life(Kind kind, Random& random) {
  const double life = kIsJob[kind] ? random.log_normal(seconds_of(kJobMedian), kJobSigma)
                                   : random.exponential(mean_life(kind));
  return std::max(life, 10.0);
}

// Mean of a request, in the units of kSizes; pods without a request count with none.
double mean_request() {
  double size = 0, requesting = 0;
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    size += kSizes[i] * kSizeWeights[i];
  for (const Kind kind : {kGuaranteed, kBurstableService, kBurstableJob})
    requesting += kShares[kind];
  return size * requesting;
}

class Generator {
 public:
  explicit Generator(const WorkloadOptions& options) : options_(options) {
    const double wanted = static_cast<double>(options.node_memory.count) * options.requested_share;
    unit_ = wanted / (static_cast<double>(options.pods_per_node) * mean_request());
  }

  std::vector<PodPlan> run() {
    Random random(options_.seed, 1);
    const std::size_t count = options_.nodes * options_.pods_per_node;
    for (std::size_t i = 0; i < count; ++i)
      add_running(static_cast<Kind>(random.pick(kShares)));
    for (const Kind kind : {kGuaranteed, kBurstableService, kBurstableJob, kBestEffortJob})
      add_arrivals(kind, kShares[kind] * static_cast<double>(count) / mean_life(kind));
    std::sort(plans_.begin(), plans_.end(), [](const PodPlan& a, const PodPlan& b) {
      return a.arrives != b.arrives ? a.arrives < b.arrives : a.id < b.id;
    });
    return std::move(plans_);
  }

 private:
  // Its age is drawn evenly from its life.
  void add_running(Kind kind) {
    Random random(next_id_, options_.seed * 2);
    const double life = draw_life(kind, random);
    PodPlan plan = draw(kind, random);
    const double age = life * random.uniform();
    plan.age_at_arrival = span(age);
    plan.runs = span(life - age);
    finish(std::move(plan));
  }

  void add_arrivals(Kind kind, double per_second) {
    Random gaps(options_.seed, 100 + static_cast<std::uint64_t>(kind));
    const double end = seconds_of(options_.length);
    for (double at = gaps.exponential(1 / per_second); at < end;
         at += gaps.exponential(1 / per_second)) {
      Random random(next_id_, options_.seed * 2);
      const double life = draw_life(kind, random);
      PodPlan plan = draw(kind, random);
      plan.runs = span(life);
      plan.arrives = Instant{} + span(at);
      finish(std::move(plan));
    }
  }

  PodPlan draw(Kind kind, Random& random) const {
    PodPlan plan;
    plan.id = next_id_;
    plan.job = kIsJob[kind];
    plan.priority = kPriorities[kind];
    const double size = kSizes[random.pick(kSizeWeights)] * unit_;
    constexpr double kPage = 4096;
    const Bytes request{static_cast<std::int64_t>(size / kPage) * 4096};
    const double cpu_share = size / static_cast<double>(options_.node_memory.count);
    plan.milli_cpu = std::max<std::int64_t>(
        static_cast<std::int64_t>(cpu_share * static_cast<double>(options_.node_milli_cpu)), 10);
    if (kind == kBestEffortJob) {
      plan.qos = QosClass::kBestEffort;
      plan.milli_cpu = 0;
      plan.model.typical = 0.5 * size;
    } else {
      plan.qos = kind == kGuaranteed ? QosClass::kGuaranteed : QosClass::kBurstable;
      plan.memory_request = request;
    }
    return plan;
  }

  void finish(PodPlan plan) {
    draw_memory_use(options_, plan);
    ++next_id_;
    plans_.push_back(std::move(plan));
  }

  const WorkloadOptions& options_;
  double unit_ = 0;  // bytes of a request of size one
  std::uint64_t next_id_ = 1;
  std::vector<PodPlan> plans_;
};

void draw_limit(PodPlan& plan, Random& random) {
  if (plan.qos == QosClass::kGuaranteed) {
    plan.memory_limit = plan.memory_request;
  } else if (plan.qos == QosClass::kBurstable && random.uniform() < 0.5) {
    plan.memory_limit = Bytes{2 * plan.memory_request.count};
  }
}

// A burst is drawn for pods without a limit, which are the ones that can fill a node.
void draw_burst(const WorkloadOptions& options, PodPlan& plan, Random& random) {
  if (plan.memory_limit) return;
  // The shares of kShares that have no limit: half the Burstable pods and all BestEffort ones.
  constexpr double kWithoutLimit = 0.5 * (kShares[1] + kShares[2]) + kShares[3];
  const double pods = static_cast<double>(options.pods_per_node) * kWithoutLimit;
  const double run = seconds_of(std::min<Duration>(plan.runs, options.length));
  const double expected = options.bursts_per_node_day / pods * run / 86'400;
  const double draw = random.uniform();
  const double at = random.uniform() * run;
  constexpr double kMiB = 0x1p20;
  const double rate = random.log_uniform(8 * kMiB, 1024 * kMiB);
  const double grown =
      static_cast<double>(options.node_memory.count) * random.log_uniform(0.05, 0.8);
  if (draw >= expected) return;
  plan.model.burst_at = plan.age_at_arrival + span(at);
  plan.model.burst_rate = rate;
  plan.model.burst_to = plan.model.typical + grown;
}

}  // namespace

void draw_memory_use(const WorkloadOptions& options, PodPlan& plan) {
  Random random(plan.id, options.seed * 2 + 1);
  draw_limit(plan, random);
  MemoryModel& model = plan.model;
  const auto request = static_cast<double>(plan.memory_request.count);
  const double share = std::clamp(random.log_normal(0.55, 0.4), 0.1, 1.5);
  const double size = model.typical > 0 ? model.typical / 0.5 : request;
  model.typical = size * (plan.memory_limit ? std::min(share, 0.85) : share);
  model.daily = plan.job ? 0 : random.uniform(0, 0.15);
  model.noise = random.uniform(0.01, 0.06);
  plan.cache_share = random.uniform(0, 0.1);
  plan.exit_time = span(std::min(random.log_normal(1, 1), 20.0));
  draw_burst(options, plan, random);
  if (options.series.empty()) return;
  const auto& series =
      options.series[static_cast<std::size_t>(random.next() % options.series.size())];
  plan.series = series;
  const double peak = *std::max_element(series->values.begin(), series->values.end());
  const double limit = series->limit > 0 ? series->limit : peak;
  const double room = plan.memory_limit ? static_cast<double>(plan.memory_limit->count) : size;
  plan.series_scale = limit > 0 ? room / limit : 0;
  plan.series_offset = span(random.uniform() * seconds_of(series->at.back()));
}

std::vector<PodPlan> generate_workload(const WorkloadOptions& options) {
  return Generator(options).run();
}

std::vector<PodPlan> workload_of(const WorkloadOptions& options,
                                 const std::vector<Arrival>& trace) {
  std::vector<PodPlan> plans;
  for (const Arrival& arrival : trace) {
    if (arrival.at >= options.length) continue;
    PodPlan plan;
    plan.id = plans.size() + 1;
    Random random(plan.id, options.seed * 2);
    plan.arrives = Instant{} + arrival.at;
    plan.runs = arrival.runs.value_or(span(draw_life(kBurstableService, random)));
    plan.qos = QosClass::kBurstable;
    plan.priority = kPriorities[kBurstableService];
    plan.milli_cpu = arrival.milli_cpu;
    plan.memory_request = arrival.memory;
    draw_memory_use(options, plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace headroom::simulate
