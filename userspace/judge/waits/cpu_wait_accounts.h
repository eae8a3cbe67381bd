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
  struct Window;
  struct Row;
  struct PodWindow;
  using PodWindows = std::vector<PodWindow>;  // as Window::pods

  Totals last_totals_of(std::uint64_t cgroup, std::size_t row) const;
  void read_rows(const CpuWaitSample& sample, Window& window);
  static Row next_row(const hr_record& record, Totals& now, const Totals& before,
                      Nanoseconds length);
  static void carry_over(const WaitingGroup& group, const WindowWaits& waits, Nanoseconds busy,
                         Totals& totals);
  static PodWindows split(Window& window, const RunnersByShare& runners, const CpusOf& cpus_of);
  static void scale(Nanoseconds to, PodWindow& pod);
  void add_waits(const Window& window, PodWindows& pods);
  void add_pairs(const Window& window, const PodWindows& pods, const RunnersByShare& runners,
                 const CpusOf& cpus_of);
  void set_uses(const Window& window, const PodWindows& pods, const RunnersByShare& runners,
                const CpusOf& cpus_of);

  std::optional<Instant> last_;
  std::vector<std::optional<CpuTime>> last_cpus_;
  std::vector<std::uint64_t> last_ids_;  // the cgroups of the last window, as its rows
  IdTable last_rows_{0};
  std::vector<Totals> last_totals_;
  std::vector<std::uint64_t> pod_ids_;
  std::vector<CpuWaits> waits_;  // of pod_ids_[i]
  WaitPairs pairs_;
  CpuUses uses_;
  std::optional<double> contention_;
};

}  // namespace headroom
