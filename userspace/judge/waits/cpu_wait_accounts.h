// SPDX-License-Identifier: Apache-2.0
// CpuWaitAccounts: each pod's waits for a CPU by cause, added up from window to window, and the
// node's contention for CPUs. (Each window is split by attribute() of judge/waits/cpu_waits.h.)
#pragma once

#include "judge/waits/cpu_use.h"
#include "judge/waits/cpu_waits.h"
#include "judge/waits/wait_pairs.h"

#include <headroom/id_table.h>
#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

// The time of a CPU since boot, in nanoseconds.
struct CpuTime {
  std::uint64_t idle = 0;        // with iowait
  std::uint64_t interrupts = 0;  // irq, softirq, steal
  std::uint64_t tasks = 0;       // user, nice, system
};
using CpuTimes = std::vector<std::optional<CpuTime>>;  // by number; absent: offline

struct CpuWaitSample {
  Instant at;
  std::span<const hr_record> records;  // parents before their children
  std::span<const PodReading> pods;
  std::span<const std::optional<CpuTime>> cpus;            // empty: unknown
  const std::optional<ByCgroup<hr_throttles>>& throttles;  // absent: not watched
  SweepChanges changes = {};                               // of `records`
};

class CpuWaitAccounts {
 public:
  // A cgroup's cpu.pressure in a sweep is up to 2 s old, so a shorter window would compare times of
  // different moments.
  static constexpr Duration kWindow = std::chrono::seconds(5);
  // The CPUs that the cgroup may use; null: unknown.
  using CpusOf = std::function<const CpuSet*(CgroupId)>;

  // Whether update() would end a window.
  bool is_due(Instant at) const { return !last_ || at - *last_ >= kWindow; }
  // Ends the window if it is due. `cpus_of` is called for cgroups that waited.
  void update(const CpuWaitSample& sample, const CpusOf& cpus_of);

  // Absent: no window has ended yet. Good until the next update().
  std::optional<ByCgroup<CpuWaits>> totals() const;
  std::span<const WaitPair> pairs() const { return pairs_.longest(); }
  // Of the last window; good until the next update().
  ByCgroup<CpuUse> uses() const { return {.ids = uses_.ids, .values = uses_.values}; }
  // The share of the last window in which at least one pod waited because the node had no CPU left,
  // or because interrupts took it: of the pod that waited longest. Absent: unknown.
  std::optional<double> contention() const { return contention_; }

 private:
  // What was read of a cgroup at the end of the last window.
  struct Totals {
    std::uint64_t waited = HR_UNKNOWN, ran = HR_UNKNOWN, throttled = HR_UNKNOWN;
    std::uint64_t queues_waited = 0, any_waited = 0;  // for quota, as hr_throttles has it
    // What the last window had no room for: cpu.pressure and throttling are counted with different
    // delays.
    Nanoseconds waited_left = 0, quota_left = 0, parent_quota_left = 0, busy_left = 0;
  };
  static constexpr std::size_t kNone = SIZE_MAX;
  // A cgroup. Parents come before their children.
  struct Row {
    CgroupId id;
    std::size_t parent = kNone;  // its row; kNone: the root
    std::size_t pod = kNone;     // in pods_: the one that it is in, or is
    bool is_pod = false;         // the pod's own cgroup
    bool has_children = false;
    // Of the window:
    Nanoseconds waited = 0, ran = 0;
    Nanoseconds quota = 0;         // at its own quota and those above it in its pod
    Nanoseconds parent_quota = 0;  // above its pod
    std::optional<double> weight;  // absent: it has none of its own
    double active_weight = 0;      // of its children that compete
    std::optional<double> share;
  };
  struct Window;
  struct PodWindow;
  using PodWindows = std::vector<PodWindow>;  // as pods_

  bool is_same_tree(const CpuWaitSample& sample) const;
  void take_tree(const CpuWaitSample& sample);
  void add_to_tree(const hr_record& record, bool is_pod);
  Totals last_totals_of(std::uint64_t cgroup) const;
  void read_rows(const CpuWaitSample& sample, Nanoseconds length);
  static void begin_window(const hr_record& record, const Totals& before, Nanoseconds length,
                           Row& row, Totals& now);
  static void begin_idle_window(Row& row);
  void add_quota_above(Row& row) const;
  void set_shares(Nanoseconds length);
  RunnersByShare runners_on(std::span<const std::optional<CpuWindow>> cpus) const;
  static void carry_over(const WaitingGroup& group, const WindowWaits& waits, Nanoseconds busy,
                         Totals& totals);
  PodWindows split(Window& window, const RunnersByShare& runners, const CpusOf& cpus_of);
  static void scale(Nanoseconds to, PodWindow& pod);
  void add_waits(const Window& window, PodWindows& pods);
  void add_pairs(const Window& window, const PodWindows& pods, const RunnersByShare& runners,
                 const CpusOf& cpus_of);
  void set_uses(const Window& window, const PodWindows& pods, const RunnersByShare& runners,
                const CpusOf& cpus_of);

  std::optional<Instant> last_;
  std::vector<std::optional<CpuTime>> last_cpus_;
  std::vector<Row> rows_;  // the cgroups of the last window, in the order of its sweep
  IdTable row_of_{0};
  std::vector<Totals> totals_;           // as rows_
  SweepChanges changes_;                 // of the last window's sweep; its stamps are not kept
  std::vector<std::uint64_t> pod_list_;  // CpuWaitSample::pods, as the tree was taken
  std::vector<std::size_t> pods_;        // their rows
  std::vector<std::uint64_t> pod_ids_;
  std::vector<CpuWaits> waits_;  // of pod_ids_[i]
  WaitPairs pairs_;
  CpuUses uses_;
  std::optional<double> contention_;
};

}  // namespace headroom
