// SPDX-License-Identifier: Apache-2.0
// NodeView and CgroupTable: copies of the state at one instant. The metrics, the JSON status and
// the web page are made from these two.
//
// They are separate because the node's view changes with every act, but the table of thousands of
// cgroups only with a sweep; copying it at every check would cost the loop too much.
#pragma once

#include "report/view/ladder_steps.h"
#include "report/view/node_status.h"
#include "report/view/slices_view.h"
#include "report/view/turn_cost.h"
#include "report/view/waits_view.h"

#include <headroom/cgroup_record.h>
#include <headroom/container.h>
#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

// A threshold: configuration and state.
struct ThresholdView {
  Signal signal = Signal::kMemoryAvailable;
  Duration grace{0};
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> available;
  std::optional<Instant> below_since;
  bool met = false;
  std::optional<Duration> time_to;

  bool hard() const { return grace == Duration::zero(); }
};
constexpr std::string_view kind_name(bool hard) {
  return hard ? "hard" : "soft";
}

// Results of the first act of an eviction: the `outcome` label of headroom_evictions_total.
inline constexpr std::size_t kResults = 4;  // Outcome::Result
inline constexpr std::array<std::string_view, kResults> kResultNames{"done", "gone", "failed",
                                                                     "dry_run"};

// headroom.podLimits and headroom.coldMemory, in total; the first two are of now.
struct PodMemoryCounts {
  std::uint64_t raised_now = 0;    // cgroups with a raised memory.max
  std::uint64_t raised_bytes = 0;  // by so much, all together
  std::uint64_t raised = 0, lowered = 0;
  std::uint64_t postponed = 0;  // lowerings: usage was too near
  std::uint64_t failed = 0;
  // Bytes.
  std::uint64_t background_reclaimed = 0;
  std::uint64_t cold_pushed = 0;
  std::uint64_t cold_returned = 0;  // of what was pushed out
  friend bool operator==(const PodMemoryCounts&, const PodMemoryCounts&) = default;
};

// headroom.cpuBurst. The changes are in total, the rest is of now.
struct CpuBurstCounts {
  struct Grant {
    CgroupId pod;
    double cpus = 0;
    friend bool operator==(const Grant&, const Grant&) = default;
  };
  std::vector<Grant> grants;
  std::uint64_t granted = 0, withdrawn = 0;
  std::uint64_t failed = 0;  // writes that the kernel refused
  friend bool operator==(const CpuBurstCounts&, const CpuBurstCounts&) = default;

  double cpus() const {
    double sum = 0;
    for (const Grant& grant : grants)
      sum += grant.cpus;
    return sum;
  }
};

// headroom.cpuSuppress. The changes are in total.
struct CpuSuppressCounts {
  std::vector<CgroupId> pods;  // that are suppressed now
  std::uint64_t suppressed = 0, released = 0;
  std::uint64_t failed = 0;  // writes that the kernel refused
  friend bool operator==(const CpuSuppressCounts&, const CpuSuppressCounts&) = default;
};

// headroom.podSwap. The first two are of now, the rest is in total.
struct PodSwapCounts {
  std::uint64_t limited = 0;        // pods with a memory.swap.high
  std::uint64_t kept_in_zswap = 0;  // pods whose pages are not written to a device
  std::uint64_t throttles = 0;      // times that tasks were slowed down at memory.swap.high
  // Cgroups.
  std::uint64_t set = 0, restored = 0;
  std::uint64_t failed = 0;  // writes that the kernel refused
  friend bool operator==(const PodSwapCounts&, const PodSwapCounts&) = default;
};

// Totals since the daemon started.
struct Counters {
  std::array<std::array<std::uint64_t, kResults>, kCauses> evictions{};  // by cause_of()
  std::array<std::uint64_t, kResults> taint_evictions{};
  std::array<std::uint64_t, kResults> stuck_evictions{};
  // Kills of a part of a pod, which keeps running; by EvictionUnit, kPod is unused.
  std::array<std::array<std::uint64_t, kResults>, kEvictionUnitNames.size()> part_kills{};
  std::array<std::array<std::uint64_t, kLadderOutcomes>, kLadderSteps> ladder{};
  std::uint64_t ladder_reclaim_requested =
      0;  // bytes of page cache, of the steps that were started
  std::array<LatencyHistogram, kCauses> stats_age;  // age of the sample that a decision is based on
  LatencyHistogram detect_to_decide;  // from the sample that crossed the threshold to the decision
  LatencyHistogram
      crossing_to_decide;  // from the last good sample (hard thresholds): an upper bound
  LatencyHistogram decide_to_signal;
  LatencyHistogram signal_to_exit;
  LatencyHistogram sweep;
  // The error of forecasts in the minute before a crossing; crossings without a forecast.
  std::array<LatencyHistogram, kSignals> forecast_error;
  std::array<std::uint64_t, kSignals> unpredicted_crossings{};
  // The modelled kubelet: how much later it acts, whether it chooses the same pod, what it evicts.
  LatencyHistogram shadow_lead;
  std::uint64_t shadow_same = 0;
  std::uint64_t shadow_other = 0;
  std::uint64_t shadow_needed = 0;
  std::uint64_t shadow_unneeded = 0;
  std::array<std::uint64_t, kWakeSources> wakeups{};
  std::array<std::uint64_t, kSnapshotScopes> checks{};
  std::array<std::uint64_t, kConditions> transitions{};
  std::uint64_t victims_gone = 0;
  std::uint64_t victims_timed_out = 0;  // processes were left at the deadline
  std::uint64_t memory_returned = 0;    // bytes
  std::uint64_t memory_predicted = 0;   // bytes; the prediction for the same victims
  // Assistance for killed pods.
  std::uint64_t kill_assists_done = 0;
  std::uint64_t processes_boosted = 0;
  std::uint64_t kill_assists_missed = 0;  // too many at once
  std::uint64_t processes_reaped = 0;
  std::uint64_t loop_hangs = 0;  // a turn of the loop was overdue by more than a second
  std::uint64_t sentinel_kills = 0;
  // Node-level reclaim: runs started, and their results.
  std::uint64_t reclaims_started = 0;
  std::uint64_t reclaims_done = 0;
  std::uint64_t reclaims_failed = 0;   // could not start, or a command failed
  std::uint64_t pre_stops_failed = 0;  // pre-stop commands that could not start or failed
  std::uint64_t removals_failed = 0;   // of emptyDirs
  std::uint64_t missing_readings = 0;
  std::uint64_t self_checks = 0;  // BPF compared with the files, including the one at the start
  std::uint64_t audit_lost = 0;
  std::uint64_t flight_recordings_lost = 0;  // evictions without a flight recording
  std::uint64_t log_lost = 0;
  std::uint64_t publications_skipped = 0;
  std::uint64_t reports_failed = 0;  // report_turn() ended early: out of memory
  std::uint64_t evictions_overwritten = 0;
  std::uint64_t cgroups_lost = 0;        // did not fit into a sweep
  std::uint64_t cgroups_unresolved = 0;  // of the last sweep: without a directory
  std::uint64_t dbus_signals_lost = 0;
  std::uint64_t recording_lost = 0;             // turns missing in a recording
  std::uint64_t kernel_oom_kills_at_limit = 0;  // at the limit of the cgroup or of an ancestor
  // Kills in which the kernel could choose from all pods; `same_choice`: it chose the pod that
  // headroom would have chosen.
  struct OomKillCounts {
    std::uint64_t kills = 0, same_choice = 0;
  };
  OomKillCounts kernel_oom_kills_of_pods;  // at the limit of all pods together
  OomKillCounts kernel_oom_kills_of_node;
  // oom_score_adj of pods' processes, written to follow the ranking.
  std::uint64_t oom_scores_written = 0;
  std::uint64_t oom_scores_gone = 0;  // the process ended first
  std::uint64_t oom_scores_failed = 0;
  std::uint64_t victim_exits = 0;  // processes
  PodMemoryCounts pod_memory;
  CpuBurstCounts cpu_burst;
  CpuSuppressCounts cpu_suppress;
  PodSwapCounts pod_swap;

  // The counter for an outcome of this decision. A pod that loses only a part is not evicted.
  std::uint64_t& eviction_counter(const Decision& decision, Outcome::Result result) {
    const auto i = static_cast<std::size_t>(result);
    if (!decision.part.whole()) return part_kills[static_cast<std::size_t>(decision.part.unit)][i];
    const Reason& reason = decision.reason;
    switch (reason.cause) {
      case Cause::kThreshold:
        break;
      case Cause::kTaint:
        return taint_evictions[i];
      case Cause::kStuck:
        return stuck_evictions[i];
    }
    return evictions[cause_of(reason)][i];
  }
  std::uint64_t would_evict(std::size_t cause) const {
    return evictions[cause][static_cast<std::size_t>(Outcome::Result::kDryRun)];
  }
  std::uint64_t would_evict(Signal signal) const {
    return would_evict(static_cast<std::size_t>(signal));
  }
  std::uint64_t evicted(Signal signal) const { return evicted(static_cast<std::size_t>(signal)); }
  std::uint64_t evicted(std::size_t cause) const {
    return evictions[cause][static_cast<std::size_t>(Outcome::Result::kDone)];
  }
};

struct ProcessUsage {
  std::optional<Duration> cpu;
  std::optional<std::uint64_t> resident;  // bytes
  TurnCost last_turn;
  std::uint64_t kill_path_allocations = 0;  // of the latest turn that acted
  bool real_time = false;                   // the loop's thread has real-time scheduling
};

// The source of each group ("bpf", "files"); "" before the first. Literals, because views are
// copied by value.
using Sources = std::array<std::string_view, HR_GROUPS>;

struct NodeView {
  Instant at;
  Mode mode = Mode::kObserve;
  Observations observations;
  std::optional<SwapRoom> swap_room;  // absent: no swap, or unknown
  std::optional<Bytes> unaccounted_memory;
  std::vector<ThresholdView> thresholds;
  std::array<bool, kConditions> conditions{};
  std::vector<Victim> victims;
  std::vector<MemoryHighOverride>
      memory_high_overrides;  // memory.high values that the ladder overrides
  std::size_t throttled = 0;  // cgroups whose tasks wait at memory.high
  std::vector<TaintTimer> taint_timers;
  NodeStatusRef status;  // null: none yet
  SlicesRef slices;      // null: none yet, or slices are not managed
  Instant next_check;
  std::uint64_t cgroups = 0;
  std::optional<Instant> swept_at;
  Counters counters;
  ProcessUsage process_usage;
  Sources sources{};
  Programs programs{};
  NodeWaits waits;
  std::string audit_log;
};

struct PodRow {
  std::shared_ptr<const Pod> pod;
  CgroupId cgroup;
  Bytes memory_request;
  bool critical = false;
  std::optional<Bytes> disk{};  // measured disk usage; absent: not measured yet
  std::uint32_t measured = 0;   // PodReading::measured
  std::shared_ptr<const DiskUsage> disk_parts = {};  // of the same measurement; null: none yet
  PodDescription description = PodDescription::kComplete;
};

// Constant properties of cgroups. Tables of the same cgroups share it, so that a turn does not copy
// it.
struct CgroupIdentities {
  // All paths, concatenated without separators; path_ends has the end of each.
  std::string paths;
  std::vector<std::uint32_t> path_ends;
  std::vector<std::uint64_t> started_ns;  // in wall time, or HR_UNKNOWN
  bool all_named = false;
};

struct CgroupTable {
  Instant at;
  // Of the SweepChanges of this table: only records that a sweep has written since then must be
  // updated.
  std::uint32_t pass = 0;
  std::uint32_t order = 0;
  std::vector<hr_record> records;
  std::vector<PodRow> pods;
  WaitTable<hr_stalls> stalls;    // of cgroups that have waited for memory
  WaitTable<hr_waits> throttles;  // of cgroups that have waited for CPU quota
  WaitTable<CpuWaits> cpu_waits;  // of pods, by the pod's cgroup
  std::vector<WaitPair> cpu_pairs, memory_pairs;
  // Of `records`; never null.
  std::shared_ptr<CgroupIdentities> identities = std::make_shared<CgroupIdentities>();
  // CPU usage since the previous table, in billionths of a CPU; HR_UNKNOWN: not in that table.
  std::vector<std::uint64_t> usage_nanocores;

  std::string_view path(std::size_t record) const {
    const auto& [paths, ends, started, named] = *identities;
    const std::uint32_t begin = record == 0 ? 0 : ends[record - 1];
    return std::string_view(paths).substr(begin, ends[record] - begin);
  }
  std::uint64_t started_ns(std::size_t record) const { return identities->started_ns[record]; }
};

// The name of a cgroup: its path from the cgroup root ("/" for the root), "" when not known.
class CgroupNames {
 public:
  virtual ~CgroupNames() = default;
  virtual std::string_view path_of(CgroupId id) const = 0;
  // Creation time in nanoseconds of wall time, or HR_UNKNOWN.
  virtual std::uint64_t started_ns(CgroupId id) const = 0;
};

// Identities of containers by their runtime's id. Called on the HTTP server's thread.
class ContainerNames {
 public:
  virtual ~ContainerNames() = default;
  // Null: unknown. Valid until the next call.
  virtual const ContainerIdentity* find(std::string_view runtime_id) = 0;
};

// Computes a pod's QoS class if its status does not have it. It is passed in because the rule is
// part of judge/.
using QosOf = QosClass (*)(const Pod& pod);
// From the pod's status, else from `qos_of`; "" if neither has it.
std::string_view qos_name(const Pod& pod, QosOf qos_of);

// Updates a buffer that holds an older publication; allocates only to grow it. Records that no
// sweep has written since then are kept. `previous` is the published table; null: none. Paths are
// shared with it if the cgroups are still the same.
void fill(CgroupTable& table, const CgroupTable* previous, const Snapshot& snapshot,
          const CgroupNames* names);
void fill_thresholds(std::vector<ThresholdView>& views, const Policy& policy,
                     const Verdict& verdict);

}  // namespace headroom::report
