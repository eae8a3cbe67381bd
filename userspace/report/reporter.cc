// SPDX-License-Identifier: Apache-2.0
#include "report/reporter.h"

#include "base/log/journal.h"
#include "report/eviction/messages.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

namespace headroom::report {

void ForecastAccuracy::score(ThresholdForecasts& threshold_forecasts, Signal signal,
                             Instant crossed_at, Counters& counters) {
  const auto i = static_cast<std::size_t>(signal);
  bool predicted = false;
  for (std::size_t k = 0; k < threshold_forecasts.forecasts.size(); ++k) {
    const Forecast& forecast = threshold_forecasts.forecasts[k];
    if (crossed_at - forecast.made_at > kStep * kMaxForecasts) continue;
    counters.forecast_error[i].observe(std::chrono::abs(forecast.predicted_at - crossed_at));
    predicted = true;
  }
  if (!predicted) ++counters.unpredicted_crossings[i];
  threshold_forecasts.forecasts = {};
}

void ForecastAccuracy::update(const Policy& policy, const Verdict& verdict, Instant at,
                              Counters& counters) {
  thresholds_.resize(policy.thresholds.size());
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!reading.available || reading.index >= thresholds_.size()) continue;
    ThresholdForecasts& threshold_forecasts = thresholds_[reading.index];
    const bool below = reading.below_since.has_value();
    if (below && !threshold_forecasts.below)
      score(threshold_forecasts, policy.thresholds[reading.index].signal, at, counters);
    threshold_forecasts.below = below;
    if (below || !reading.time_to) continue;
    if (threshold_forecasts.forecasts.size() > 0 &&
        at - threshold_forecasts.forecasts.newest().made_at < kStep)
      continue;
    threshold_forecasts.forecasts.next_slot() = {.made_at = at,
                                                 .predicted_at = at + *reading.time_to};
  }
}

bool TransitionLog::update(const Policy& policy, const Verdict& verdict, Instant at,
                           Counters& counters) {
  update_thresholds(policy, verdict, at);
  bool condition_changed = false;
  for (std::size_t i = 0; i < kConditions; ++i) {
    if (conditions_[i] == verdict.conditions[i]) continue;
    conditions_[i] = verdict.conditions[i];
    ++counters.transitions[i];
    condition_changed = true;
    log::write(conditions_[i] ? log::Level::warn : log::Level::info,
               condition_line(static_cast<Condition>(i), conditions_[i]));
  }
  return condition_changed;
}

void TransitionLog::update_thresholds(const Policy& policy, const Verdict& verdict, Instant at) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    if (!reading.met || !reading.limit || !reading.available) continue;
    if (reading.index >= policy.thresholds.size()) continue;
    const Threshold& threshold = policy.thresholds[reading.index];
    // Where no pod is evicted for it, the line of its condition says all.
    if (threshold.signal == Signal::kCpuPressure && !policy.cpu_eviction_period) continue;
    auto& last_logged = last_logged_[static_cast<std::size_t>(threshold.signal)][threshold.hard()];
    // `last_logged` is updated while the threshold stays met, so the threshold is logged once,
    // however long it stays met.
    const bool is_new = !last_logged || at - *last_logged >= kThresholdLogPeriod;
    last_logged = at;
    if (!is_new) continue;
    log::write(
        log::Level::warn,
        threshold_line(threshold.signal, threshold.hard(), *reading.limit, *reading.available),
        {{"HEADROOM_SIGNAL", name(threshold.signal)}});
  }
}

namespace {

Duration to_duration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

// statm: "size resident shared …", in pages.
std::optional<std::uint64_t> resident_pages(std::string_view statm) {
  const auto space = statm.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  statm.remove_prefix(space + 1);
  std::uint64_t pages = 0;
  const auto parsed = std::from_chars(statm.data(), statm.data() + statm.size(), pages);
  return parsed.ec == std::errc{} ? std::optional(pages) : std::nullopt;
}

}  // namespace

ProcessUsageMeter::ProcessUsageMeter() : statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

void ProcessUsageMeter::read(ProcessUsage& cost) const {
  // The loop runs on the main thread.
  const int policy = ::sched_getscheduler(::getpid()) & ~SCHED_RESET_ON_FORK;
  cost.real_time = policy == SCHED_FIFO || policy == SCHED_RR;
  rusage usage{};
  cost.cpu.reset();
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    cost.cpu = to_duration(usage.ru_utime) + to_duration(usage.ru_stime);
  cost.resident.reset();
  std::array<char, 128> text{};
  const ssize_t length = ::pread(statm_.get(), text.data(), text.size(), 0);
  if (length <= 0) return;
  if (const auto pages = resident_pages({text.data(), static_cast<std::size_t>(length)}))
    cost.resident = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

namespace {

// These acts send signals, so allocations before them are on the kill path.
bool is_signal(const Outcome& outcome) {
  return outcome.decision.act == Act::kKill || outcome.decision.act == Act::kTerminate;
}

}  // namespace

NodeReporter::NodeReporter(ReporterSetup setup)
    : setup_(std::move(setup)),
      policy_(setup_.policy),
      audit_({.file = setup_.audit_log,
              .unwritten_file = setup_.unwritten_audit_log,
              .qos_of = setup_.qos_of,
              .wall_time = setup_.wall_time}),
      events_(setup_.views->events, setup_.qos_of, setup_.wall_time),
      eviction_tracker_(
          {.audit = &audit_,
           .names = setup_.names,
           .qos_of = setup_.qos_of,
           .flight_recording = setup_.audit_log.empty() ? nullptr : &flight_recorder_,
           .on_evicted = [this](const Eviction& eviction) { begin_eviction(eviction); },
           .on_ended =
               [this](const Eviction& eviction) { events_.add_eviction(eviction, "ended"); }}),
      publisher_(setup_.views, setup_.names, setup_.audit_log) {}

void NodeReporter::record(const TurnCost& cost) {
  process_usage_.last_turn = cost;
  ++counters_.wakeups[static_cast<std::size_t>(cost.wake)];
  ++counters_.checks[static_cast<std::size_t>(cost.scope)];
  if (cost.scope == SnapshotScope::kCgroups) counters_.sweep.observe(cost.snapshot);
}

void NodeReporter::reconfigure(const Policy& policy) {
  policy_ = policy;
  forecast_accuracy_.reset();
}

void NodeReporter::record_shadow(const ShadowResult& shadow_result) {
  shadow_ = &shadow_result;
  if (shadow_result.evicts)
    ++(shadow_result.unneeded ? counters_.shadow_unneeded : counters_.shadow_needed);
  for (const KubeletPrediction& would : shadow_result.predictions) {
    counters_.shadow_lead.observe(would.lead);
    ++(would.same ? counters_.shadow_same : counters_.shadow_other);
  }
}

void NodeReporter::begin_eviction(const Eviction& eviction) {
  if (setup_.on_evicted) setup_.on_evicted(eviction);
  events_.add_eviction(eviction, "began");
}

void NodeReporter::record_kernel_oom(const KernelOomKill& kill, Instant at) {
  if (kill.had_all_pods()) {
    auto& oom_kills =
        kill.limit_of ? counters_.kernel_oom_kills_of_pods : counters_.kernel_oom_kills_of_node;
    ++oom_kills.kills;
    if (kill.same_choice()) ++oom_kills.same_choice;
  } else {
    ++counters_.kernel_oom_kills_at_limit;
  }
  log_kernel_oom(kill);
  events_.add_oom_kill(kill, at);
}

void NodeReporter::report_turn(const Snapshot& snapshot, const Verdict& verdict,
                               std::span<const Outcome> outcomes) {
  // The sweep failed, so there is no verdict to publish. Outcomes are recorded nevertheless,
  // because each is reported only once.
  if (verdict.needs_cgroups && outcomes.empty()) return;
  if (!verdict.needs_cgroups) flight_recorder_.record(snapshot, verdict);
  try {
    if (std::any_of(outcomes.begin(), outcomes.end(), is_signal))
      process_usage_.kill_path_allocations = process_usage_.last_turn.kill_path_allocations;
    const bool outcome_recorded =
        eviction_tracker_.update({.policy = policy_,
                                  .snapshot = snapshot,
                                  .verdict = verdict,
                                  .outcomes = outcomes,
                                  .kill_path_allocations = process_usage_.kill_path_allocations,
                                  .shadow = shadow_},
                                 counters_);
    if (verdict.needs_cgroups) return;
    events_.update_conditions(verdict.conditions, snapshot.at);
    events_.update_slices(slices_, snapshot.at);
    setup_.views->events.flush();
    forecast_accuracy_.update(policy_, verdict, snapshot.at, counters_);
    const bool condition_changed = transition_log_.update(policy_, verdict, snapshot.at, counters_);
    // A change is published at once, so that removed cgroups lose their series.
    publisher_.publish_cgroups(snapshot, outcome_recorded || snapshot.cgroups_changed);
    if (publisher_.is_node_due(snapshot.at, outcome_recorded || condition_changed)) {
      process_usage_meter_.read(process_usage_);
      count_losses();
      const bool changed =
          publisher_.publish_node(policy_, snapshot, verdict, counters_, process_usage_);
      if (changed && setup_.on_properties_changed) setup_.on_properties_changed();
    }
  } catch (const std::exception&) {
    // Most likely out of memory, so only a counter is increased.
    ++counters_.reports_failed;
  }
}

void NodeReporter::count_losses() {
  const AuditLog::AuditStats audit = audit_.stats();
  counters_.audit_lost = audit.lost;
  counters_.flight_recordings_lost = flight_recorder_.lost() + audit.flight_recordings_lost;
  counters_.log_lost = log::lost();
  counters_.evictions_overwritten = eviction_tracker_.overwritten();
  counters_.publications_skipped = setup_.views->node.skipped() + setup_.views->cgroups.skipped();
}

}  // namespace headroom::report
