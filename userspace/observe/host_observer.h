// SPDX-License-Identifier: Apache-2.0
// HostObserver: this host, as snapshots: the node's signals, every cgroup, the pods among them.
#pragma once

#include "observe/bpf/wait_watch.h"
#include "observe/cgroup/cgroup_files.h"
#include "observe/cgroup/cgroup_inventory.h"
#include "observe/cgroup/cgroup_source.h"
#include "observe/growing_waiters.h"
#include "observe/node/cpu_wait_source.h"
#include "observe/node/disk_meter.h"
#include "observe/node/filesystem_reader.h"
#include "observe/node/node_source.h"
#include "observe/pod/parts_reader.h"
#include "observe/pod/pod_registry.h"
#include "observe/stalled_pods.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/ports.h>
#include <headroom/snapshot.h>
#include <headroom/waits.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

// PressureWindow: how much of the last moments was lost to the node's own shortage of memory, from
// totals that only grow. Decaying averages would still report pressure long after it is over.

class PressureWindow {
 public:
  // Of an Observation made here: what is available is the part of the time that was not lost, in
  // millionths.
  static constexpr std::int64_t kWhole = 1'000'000;

  explicit PressureWindow(Duration window, std::int64_t cpus) : window_(window), cpus_(cpus) {}

  // `node` is null if waits are not watched: then the result is unknown, and the past is dropped.
  // Otherwise the time that tasks waited for memory because the node was short of it, over at least
  // the window, as a share of its CPUs' time; absent until a window has passed.
  std::optional<Observation> add(Instant at, const hr_stalls* node);

  // From now on.
  void set_cpus(std::int64_t cpus) { cpus_ = cpus; }

 private:
  struct Sample {
    Instant at;
    std::uint64_t ns = 0;  // of all node-wide causes, since the watch began
  };
  // Finer than the window by this, so that it slides and does not jump.
  static constexpr std::size_t kSteps = 16;

  const Sample* oldest_needed(Instant at);

  Duration window_;
  std::int64_t cpus_;
  std::array<Sample, kSteps + 2> samples_{};  // a ring
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

// FlushPlan: whether memory.available is so near a limit that its error matters.
//
// Reading memory.stat flushes the counters of the CPUs only once more than 64 changes for each CPU
// have come together, and each CPU keeps up to 64 more to itself (memcg_rstat_updated() and
// memcg_vmstats_needs_flush(), mm/memcontrol.c, 6.12). A change is a page, or more: at 256 CPUs of
// 4 KiB pages the sum may be off by 128 MiB until the kernel's own flush, every two seconds.
//
// And more while another's flush was interrupted between two CPUs: it has already set the count of
// changes back, so that readers flush nothing until it goes on (mem_cgroup_css_rstat_flush(), 7.2).

class FlushPlan {
 public:
  // Flushes take one CPU's time divided by this, at most: a twentieth.
  static constexpr std::int64_t kShareOfCpu = 20;
  // What they did not take in so long is saved: just before a limit is crossed several looks come
  // within milliseconds, and one flush that took long must not put off those after it.
  static constexpr Duration kSaved = std::chrono::seconds(2);
  // For how long a flush may be interrupted: some turns of the CPU's other tasks.
  static constexpr Duration kInterrupted = std::chrono::milliseconds(20);
  // What is filled meanwhile is missing from the reading, and the guard lets seven eighths of what
  // the reading leaves be used (GuardControl::kEighths).
  static constexpr std::int64_t kShare = 8;

  FlushPlan(std::int64_t cpus, std::int64_t page_size) : page_size_(page_size) { set_cpus(cpus); }

  // From the next set_limits() on.
  void set_cpus(std::int64_t cpus) { error_ = 2 * 64 * cpus * page_size_; }

  // How far memory.available may be from what it would be after a flush, in bytes, while no other
  // flush is interrupted.
  std::int64_t error() const { return error_; }
  // The limits of memory.available, as of the last judgement.
  void set_limits(const Policy& policy, const Verdict& verdict);
  bool due(const std::optional<Observation>& available, Instant at) const;
  // A flush; for as long as it took there is none again: what is decided is decided of this one.
  void record(Instant began, Instant ended) {
    const Duration took = ended - began;
    affordable_ = std::max(affordable_, began - kSaved) + kShareOfCpu * took;
    next_ = std::max(affordable_, ended + took);
  }

 private:
  std::int64_t page_size_;
  std::int64_t error_ = 0;
  std::int64_t near_ = error_;  // a limit, in bytes
  std::vector<std::int64_t> limits_;
  Instant affordable_{};  // when the share of a CPU has paid for all flushes made
  Instant next_{};
};

// StallAttribution: SwapReading::stalled_micros without what pods wait for at their own limits, and
// without the waits of cgroups that grow.

class StallAttribution {
 public:
  // `node`: the waits of all cgroups by cause; null: not observed, then all of the time counts.
  // `growing`: the share of these cgroups in the waits for the node's own causes, 0 to 1.
  void apply(const hr_stalls* node, double growing, std::optional<SwapReading>& reading);

 private:
  struct Totals {
    Instant at;  // SwapReading::counted_at
    std::uint64_t micros = 0;
    std::uint64_t own = 0, all = 0;  // nanoseconds of waits: of the node's own causes, and of all
  };
  std::optional<Totals> last_;
  std::uint64_t counted_ = 0;  // microseconds
};

// RecordIndex: where the record of a cgroup is in a pass.

class RecordIndex {
 public:
  // The order of a pass differs from that of the one before.
  void count_new_order() { ++order_; }
  // SweepChanges::order
  std::uint32_t order() const { return order_; }
  // The set of cgroups changed.
  void update(std::span<const hr_record> records);
  // Null: there is none.
  const hr_record* find(std::span<const hr_record> records, CgroupId id) const;

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> positions_;  // id → index of its record
  std::uint32_t order_ = 0;
};

// AllocatableReader: the signal allocatableMemory.available, of the cgroup of all pods.

class AllocatableReader {
 public:
  // The set of cgroups changed; null: pods have no cgroup.
  void set_cgroup(const KnownCgroup* pods);
  // After a pass over all cgroups.
  void read(NodeSource& node, const CgroupInventory& inventory, const RecordIndex& index,
            std::span<const hr_record> records, Instant at, Observations& all);
  // Between two passes: that cgroup alone, from its files.
  void read_files(NodeSource& node, Instant at, Observations& all);

 private:
  std::optional<CgroupId> id_;
  // While the cgroup has a limit of its own: only then is the signal read with the node's.
  std::optional<CgroupFiles> files_;
};

// UndescribedPods: what the processes of pods without a description show of them.

class UndescribedPods {
 public:
  // Looks at the processes of these pods if it is due, and writes the result to the registry.
  void update(std::span<const PodReading> pods, const CgroupInventory& inventory,
              const std::string& proc, Instant at, bool cgroups_changed, PodRegistry& registry);

 private:
  // A kubelet describes a pod within a moment; one that does not answer costs a look now and then.
  static constexpr Duration kPeriod = std::chrono::seconds(5);

  Instant read_at_{};
  std::unordered_map<CgroupId, bool> protected_;  // pods without a description
};

class HostObserver final : public Observer {
 public:
  struct Parts {
    NodeSource node;
    std::unique_ptr<CgroupSource> cgroups;
    CgroupInventory inventory;
    std::string pods_cgroup;                      // "kubepods.slice", below the cgroup root
    std::unique_ptr<WaitSource> waits = nullptr;  // null: not watched
    Duration pressure_window = std::chrono::seconds(1);
    std::int64_t cpus = 1;                    // online, at the start
    std::int64_t (*online_cpus)() = nullptr;  // asked for again now and then; null: never
    std::int64_t page_size = 4096;
    Instant (*clock)() = now;
    std::unique_ptr<DiskMeter> disks = nullptr;  // null: pods' disk usage stays unknown
    std::string cgroup_root = {};  // "/sys/fs/cgroup": where disks look for containers
    ImageStorage images = {};
    std::string proc = "/proc";
    ContainerAt container_at = nullptr;                  // null: parts of pods have no requests
    std::unique_ptr<CpuWaitSource> cpu_waits = nullptr;  // null: not observed
  };
  explicit HostObserver(Parts parts);

  Snapshot take_snapshot(SnapshotScope depth) override;
  void measure_disks() override;

  // What the pods' manifests say, from now on.
  void set_declared_pods(std::vector<Pod> pods, const std::set<std::string>& of_kubelet = {},
                         bool kubelet_describes = false) {
    registry_.set_declared_pods(std::move(pods), of_kubelet, kubelet_describes);
    disk_targets_stale_ = parts_stale_ = true;
  }

  // The inside of pods is read as far as this policy asks, from now on.
  void apply_policy(const Policy& policy) {
    if (parts_reader_.set_options(
            {.unit = policy.eviction_unit, .limits = policy.ladder.stuck_duration.has_value()}))
      parts_stale_ = true;
  }

  // What was judged of the last snapshot: near one of its limits memory is read after a flush.
  void set_limits(const Policy& policy, const Verdict& verdict) {
    flush_plan_.set_limits(policy, verdict);
  }
  // Flushes of memory statistics that were made near a limit.
  std::uint64_t flushes() const { return flushes_; }
  // Snapshot::swap also without swap (headroom.thrashAware), from now on.
  void watch_without_swap(bool wanted) { parts_.node.watch_without_swap(wanted); }

  // memory.pressure is taken over this, from now on.
  // CPUs that are online, as of a look in the last ten seconds.
  std::int64_t cpus() const { return parts_.cpus; }

  void set_pressure_window(Duration window) { pressure_ = PressureWindow(window, parts_.cpus); }

  const CgroupInventory& inventory() const { return parts_.inventory; }
  const CgroupSource& source() const { return *parts_.cgroups; }
  // The pod the cgroup lies in, however deep; null: in none, or not known (yet).
  std::shared_ptr<const Pod> pod_of(CgroupId id) const;
  PodRegistry::ManifestCounts manifest_counts() const { return registry_.manifest_counts(); }
  // Readings that could not be had, since the start: passes that failed, a signal without a value.
  std::uint64_t missing_readings() const {
    return missing_readings_ + (parts_.disks ? parts_.disks->failed() : 0) +
           (parts_.waits ? parts_.waits->failed() : 0);
  }
  std::uint64_t passes() const { return passes_; }
  // The last failed pass, in words; empty after a good one.
  const std::string& trouble() const { return error_; }

 private:
  std::optional<CgroupId> pod_cgroup_of(CgroupId id) const;
  void update_growing_waiters(Snapshot& snapshot);
  void read_memory();
  void read_memory(const hr_record* root, Instant sampled);
  void count_cpus();
  bool read_flushed_memory();
  bool flush_near_limit();
  void sweep_cgroups(Snapshot& snapshot);
  void read_parts(Snapshot& snapshot);
  void set_disk_targets(std::span<const PodReading> pods);
  void update_registry(std::span<const hr_record> records);
  void find_top_level(std::span<const hr_record> records);
  std::span<const PodReading> read_pods(std::span<const hr_record> records,
                                        const SweepChanges& changes, bool same);

  Parts parts_;
  PodRegistry registry_;
  PartsReader parts_reader_;
  bool parts_stale_ = true;  // it knows other cgroups or pods than there are
  GrowingWaiters growing_waiters_;
  StalledPods stalled_pods_;
  std::uint64_t stalls_lost_ = 0;  // ByCgroup::lost, as of the last sweep
  StallAttribution stall_attribution_;
  PressureWindow pressure_;
  FlushPlan flush_plan_;
  Instant cpus_counted_at_{};
  std::uint64_t flushes_ = 0;
  Observations observations_;  // as last sampled; slow ones keep their older time
  std::unique_ptr<FilesystemReader> filesystems_;
  UndescribedPods undescribed_pods_;
  RecordIndex index_;
  std::vector<std::uint32_t> top_level_;  // positions of the root's children in a pass
  AllocatableReader allocatable_;
  std::vector<CgroupId> registered_;  // to the registry, sorted
  bool disk_targets_stale_ = true;    // the disk meter knows other pods than there are
  std::uint64_t missing_readings_ = 0;
  std::uint64_t passes_ = 0;
  std::string error_;
};

}  // namespace headroom::observe
