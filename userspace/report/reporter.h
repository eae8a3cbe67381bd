// SPDX-License-Identifier: Apache-2.0
// NodeReporter: publishes the readings of each turn of the loop, logs its actions and writes the
// audit log.
#pragma once

#include "base/file_io.h"
#include "report/event_source.h"
#include "report/eviction/audit_log.h"
#include "report/eviction/eviction_tracker.h"
#include "report/eviction/flight_recorder.h"
#include "report/kernel_oom.h"
#include "report/view/node_view.h"
#include "report/view/published_views.h"
#include "report/view/turn_cost.h"
#include "report/view/view_publisher.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace headroom::report {

// ForecastAccuracy: when a threshold is crossed, counts the errors of the forecasts of the last
// minute.

class ForecastAccuracy {
 public:
  static constexpr std::size_t kMaxForecasts = 60;  // forecasts of a threshold, a second apart
  static constexpr Duration kStep = std::chrono::seconds(1);

  void update(const Policy& policy, const Verdict& verdict, Instant at, Counters& counters);
  // The thresholds have changed.
  void reset() { thresholds_.clear(); }

 private:
  struct Forecast {
    Instant made_at;
    Instant predicted_at;
  };
  struct ThresholdForecasts {
    Ring<Forecast, kMaxForecasts> forecasts;
    bool below = true;  // until seen above: a threshold crossed at the start was not forecast
  };
  static void score(ThresholdForecasts& threshold_forecasts, Signal signal, Instant crossed_at,
                    Counters& counters);

  std::vector<ThresholdForecasts> thresholds_;
};

// TransitionLog: logs once when a node condition changes and when a threshold is met.

class TransitionLog {
 public:
  // A signal that moves around its threshold is logged no more often than the kubelet would.
  static constexpr Duration kThresholdLogPeriod = std::chrono::seconds(10);

  // True: a condition changed.
  bool update(const Policy& policy, const Verdict& verdict, Instant at, Counters& counters);

 private:
  void update_thresholds(const Policy& policy, const Verdict& verdict, Instant at);

  std::array<bool, kConditions> conditions_{};
  // Indexed by signal, then by kind: 0 soft, 1 hard.
  std::array<std::array<std::optional<Instant>, 2>, kSignals> last_logged_{};
};

// ProcessUsageMeter: the resources that the daemon itself uses, as the kernel counts them.

class ProcessUsageMeter {
 public:
  ProcessUsageMeter();
  // Fills `cpu`, `resident` and `real_time`; a value that cannot be read is absent.
  void read(ProcessUsage& cost) const;

 private:
  Fd statm_;  // kept open: reading it is one system call
};

struct ReporterSetup {
  std::shared_ptr<PublishedViews> views;
  Policy policy;
  std::filesystem::path audit_log;              // empty: none
  std::filesystem::path unwritten_audit_log{};  // see AuditSetup
  const CgroupNames* names = nullptr;           // used on the loop's thread
  QosOf qos_of = nullptr;                       // called on any thread
  // A pod's eviction began. Called on the loop's thread; must not block (DbusThread::evicted does
  // not).
  std::function<void(const Eviction&)> on_evicted;
  // What was published of the mode, the conditions or the sources changed. Like on_evicted.
  std::function<void()> on_properties_changed{};
  std::function<WallTime(Instant)> wall_time = wall_time_of;
};

class NodeReporter {
 public:
  explicit NodeReporter(ReporterSetup setup);

  // Call before report_turn() of the same turn.
  void record(const TurnCost& cost);
  // The observer's total of readings that failed.
  void set_missing_readings(std::uint64_t total) { counters_.missing_readings = total; }
  // Losses of other components, as totals; `unresolved` is the current number.
  struct Losses {
    std::uint64_t cgroups = 0, unresolved = 0, notices = 0, recorded = 0;
  };
  void set_losses(const Losses& losses) {
    counters_.cgroups_lost = losses.cgroups;
    counters_.cgroups_unresolved = losses.unresolved;
    counters_.dbus_signals_lost = losses.notices;
    counters_.recording_lost = losses.recorded;
  }
  // Totals of other threads: the reaper, which frees a victim's memory sooner, and the sentinel,
  // which kills if a turn of the loop is overdue.
  struct KillAssists {
    std::uint64_t limits_lifted = 0, boosted = 0, missed = 0, reaped = 0, hangs = 0,
                  sentinel_kills = 0;
  };
  void set_kill_assists(const KillAssists& kill_assists) {
    counters_.kill_assists_done = kill_assists.limits_lifted;
    counters_.processes_boosted = kill_assists.boosted;
    counters_.kill_assists_missed = kill_assists.missed;
    counters_.processes_reaped = kill_assists.reaped;
    counters_.loop_hangs = kill_assists.hangs;
    counters_.sentinel_kills = kill_assists.sentinel_kills;
  }
  // oom_score_adj of pods' processes, as totals.
  struct OomScores {
    std::uint64_t written = 0, gone = 0, failed = 0;
  };
  void set_oom_scores(const OomScores& scores) {
    counters_.oom_scores_written = scores.written;
    counters_.oom_scores_gone = scores.gone;
    counters_.oom_scores_failed = scores.failed;
  }
  void set_pod_memory(const PodMemoryCounts& counts) { counters_.pod_memory = counts; }
  void set_cpu_burst(const CpuBurstCounts& counts) { counters_.cpu_burst = counts; }
  void set_pod_swap(const PodSwapCounts& counts) { counters_.pod_swap = counts; }
  void set_cpu_suppress(const CpuSuppressCounts& counts) { counters_.cpu_suppress = counts; }
  // The source of each group, after each self-check.
  void set_sources(const Sources& sources) {
    publisher_.set_sources(sources);
    ++counters_.self_checks;
  }
  // The node's new status.
  void set_status(NodeStatusRef status) { publisher_.set_status(std::move(status)); }
  void set_slices(SlicesRef slices) {
    slices_ = slices;
    publisher_.set_slices(std::move(slices));
  }
  void set_programs(const Programs& programs) { publisher_.set_programs(programs); }
  // A kill by the kernel's OOM killer; the exit of a process of an evicted pod.
  void record_kernel_oom(const KernelOomKill& kill, Instant at);
  void count_victim_exit() { ++counters_.victim_exits; }
  // What the kubelet would have done in the turn that is reported next.
  void record_shadow(const ShadowResult& shadow_result);
  // A new policy is in force.
  void reconfigure(const Policy& policy);

  // Call after the actions of the turn, never before: a kill does not wait for its log line.
  void report_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes);

  AuditLog::AuditStats audit_stats() const { return audit_.stats(); }
  // Every eviction that was reported as ended is in the audit log, or kept for the next daemon.
  bool evictions_are_kept() const { return audit_.all_kept(); }

 private:
  void count_losses();
  void begin_eviction(const Eviction& eviction);

  const ReporterSetup setup_;
  Policy policy_;
  FlightRecorder flight_recorder_;
  AuditLog audit_;
  EventSource events_;
  SlicesRef slices_;
  EvictionTracker eviction_tracker_;
  TransitionLog transition_log_;
  ForecastAccuracy forecast_accuracy_;
  const ShadowResult* shadow_ = nullptr;  // of the turn that is being reported
  ProcessUsageMeter process_usage_meter_;
  Counters counters_;
  ProcessUsage process_usage_;
  ViewPublisher publisher_;
};

}  // namespace headroom::report
