// SPDX-License-Identifier: Apache-2.0
// NodeReporter: the Reporter of a node: shows its view, logs what happened, feeds the audit log.
#pragma once

#include "report/audit.h"
#include "report/chronicle.h"
#include "report/forecast_score.h"
#include "report/kernel_oom.h"
#include "report/minute.h"
#include "report/node_view.h"
#include "report/published.h"
#include "report/self_cost.h"
#include "report/tick_cost.h"
#include "report/transitions.h"

#include <headroom/policy.h>
#include <headroom/ports.h>

#include <filesystem>
#include <functional>
#include <memory>

namespace headroom::report {

// What the HTTP and D-Bus threads read. Made first, shared with them, and outliving them.
struct Shown {
  Published<NodeView> node;
  Published<CgroupTable> cgroups;
};

struct ReporterSetup {
  std::shared_ptr<Shown> shown;
  Policy policy;
  std::filesystem::path audit_log;     // empty: none
  const CgroupNames* names = nullptr;  // asked on the loop's thread
  QosOf qos_of = nullptr;              // called on any thread
  // A pod's eviction has begun. On the loop's thread; must not wait (BusThread::evicted does not).
  std::function<void(const Eviction&)> on_evicted;
  std::function<WallTime(Instant)> wall_time = wall_time_of;
};

class NodeReporter final : public Reporter {
 public:
  // Between two publications, unless something happened: readers look once a second or less.
  static constexpr Duration kShowEvery = std::chrono::milliseconds(200);

  explicit NodeReporter(ReporterSetup setup);

  // Before the tell() of the same turn.
  void note(const TickCost& cost);
  // The observer's total of readings that failed.
  void note_missing_readings(std::uint64_t total) { counters_.missing_readings = total; }
  // What others lost, as totals; `unresolved` as of now.
  struct Losses {
    std::uint64_t cgroups = 0, unresolved = 0, notices = 0, recorded = 0;
  };
  void note_losses(const Losses& losses) {
    counters_.cgroups_lost = losses.cgroups;
    counters_.cgroups_unresolved = losses.unresolved;
    counters_.notices_lost = losses.notices;
    counters_.recording_lost = losses.recorded;
  }
  // What other threads did: to have memory back sooner, and in the loop's place; as totals.
  struct Helped {
    std::uint64_t uncapped = 0, boosted = 0, unhelped = 0, reaped = 0, hangs = 0,
                  kills_in_a_hang = 0;
  };
  void note_helped(const Helped& helped) {
    counters_.victims_uncapped = helped.uncapped;
    counters_.processes_boosted = helped.boosted;
    counters_.victims_unhelped = helped.unhelped;
    counters_.processes_reaped = helped.reaped;
    counters_.loop_hangs = helped.hangs;
    counters_.kills_in_a_hang = helped.kills_in_a_hang;
  }
  // oom_score_adj of pods' processes, as totals.
  struct OomScores {
    std::uint64_t written = 0, gone = 0, failed = 0;
  };
  void note_oom_scores(const OomScores& scores) {
    counters_.oom_scores_written = scores.written;
    counters_.oom_scores_gone = scores.gone;
    counters_.oom_scores_failed = scores.failed;
  }
  // Where the groups come from, after each self-check.
  void note_sources(const Sources& sources) {
    sources_ = sources;
    ++counters_.self_checks;
  }
  // The node's status, shown from now on.
  void note_status(NodeStatusRef status);
  void note_slices(SlicesRef slices) { slices_ = std::move(slices); }
  void note_programs(const Programs& programs) { programs_ = programs; }
  // The kernel's OOM killer chose a process; one of an evicted pod has exited.
  void note_kernel_oom(const KernelOomKill& kill);
  void note_victim_exit() { ++counters_.victim_exits; }
  // What the kubelet would have made of the turn that is told next.
  void note_shadow(const ShadowSight& sight);
  // A new policy is in force.
  void adopt(const Policy& policy);

  void tell(const Snapshot& snapshot, const Verdict& verdict,
            std::span<const Outcome> outcomes) override;

  AuditLog::Tally audit_tally() const { return audit_.tally(); }

 private:
  void show_cgroups(const Snapshot& snapshot, bool news);
  void show_node(const Snapshot& snapshot, const Verdict& verdict, bool news);
  void count_losses();

  const ReporterSetup setup_;
  Policy policy_;
  MinuteRecorder minute_;
  AuditLog audit_;
  Chronicle chronicle_;
  Transitions transitions_;
  ForecastScore forecasts_;
  const ShadowSight* shadow_ = nullptr;  // of the turn that is told
  SelfMeter meter_;
  Counters counters_;
  SelfCost self_;
  Sources sources_{};
  NodeStatusRef status_;
  bool status_news_ = false;
  SlicesRef slices_;
  Programs programs_{};
  std::optional<Instant> node_shown_;
  std::optional<Instant> cgroups_shown_;
  std::optional<Instant> swept_at_;
  std::uint64_t cgroups_ = 0;
};

}  // namespace headroom::report
