// SPDX-License-Identifier: Apache-2.0
// NodeSources: the parts that observe the node: the cgroup source, the kernel's events, the memory
// guard, and the observer that makes snapshots from them.
#pragma once

#include "base/clock.h"
#include "config/config.h"
#include "manifest/manifest_cache.h"
#include "observe/best_source.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/bpf/memory_guard.h"
#include "observe/bpf/wait_watch.h"
#include "observe/cgroup/cgroup_inventory.h"
#include "observe/cgroup/cgroup_source.h"
#include "observe/host_observer.h"
#include "observe/node/filesystem_reader.h"
#include "report/reporter.h"
#include "report/view/node_view.h"

#include <headroom/bpf/stall_abi.h>
#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/result.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headroom::daemon {

// The directories of manifests: the operator's, headroom-kube's (pods of the kubelet), and that of
// headroomctl run.

// The kubelet's pods have precedence.
inline std::vector<observe::ManifestSource> manifest_sources(const config::Config& config) {
  std::vector<observe::ManifestSource> sources;
  if (!config.kubernetes.kubelet.url.empty())
    sources.push_back({config.kubernetes.pods_dir(), {.of_kubelet = true}});
  sources.push_back({config.pod_manifests, {}});
  sources.push_back({config::run_manifests(config), {}});
  return sources;
}

// InventoryCgroupNames: cgroup paths from the inventory, for report/.

class InventoryCgroupNames final : public report::CgroupNames {
 public:
  explicit InventoryCgroupNames(const observe::CgroupInventory& inventory)
      : inventory_(&inventory) {}
  std::string_view path_of(CgroupId id) const override {
    const observe::KnownCgroup* known = inventory_->find(id);
    return known ? std::string_view(known->path) : std::string_view();
  }
  std::uint64_t started_ns(CgroupId id) const override {
    const observe::KnownCgroup* known = inventory_->find(id);
    return known ? known->started_ns : HR_UNKNOWN;
  }

 private:
  const observe::CgroupInventory* inventory_;
};

struct ObserveSources {
  std::unique_ptr<observe::BestSource> source;
  observe::CgroupInventory inventory;
  std::unique_ptr<observe::KernelWaits> waits;
  // Null: no events are reported; the next sweep finds the changes.
  std::unique_ptr<observe::LifecycleWatch> lifecycle;
  // Null: nothing checks memory between two turns.
  std::unique_ptr<observe::MemoryGuard> guard;
};

// Opens the sources of cgroups and kernel events that the kernel and the configuration allow;
// missing ones are logged.
Result<ObserveSources> open_sources(const observe::CgroupRoot& root, config::BpfUse bpf);

// Logs from where cgroups are read, and why.
void log_source(const observe::BestSource& source);

// KernelEventHandler: handles the kernel's events: they make the next sweep earlier and are
// reported; they decide nothing.

class KernelEventHandler {
 public:
  // The delay after the first event, so that one pass serves many cgroups created or removed
  // together.
  static constexpr Duration kBatchDelay = std::chrono::milliseconds(100);

  struct Setup {
    std::function<bool(CgroupId)>
        is_victim;  // whether it is a victim that is not known to have ended
    std::function<void(const hr_event&)> oom_kill;
    std::function<void(const hr_event&)> exited;
  };
  explicit KernelEventHandler(Setup setup) : setup_(std::move(setup)) {}

  void take(const hr_event& event);

  // By when the events require a sweep; called after a batch of events, and reset. Absent: no sweep
  // is required.
  std::optional<Instant> due();

 private:
  Setup setup_;
  std::optional<Instant> due_;
};

// GuardControl: sets the memory guard between two turns, and decides whether it can be relied on.
//
// The guard is relied on while its checks run and its sum of NUMA nodes moves as memory.stat does;
// otherwise the loop checks as often as without a guard. It is not left alone with memory that
// could be gone within kLag, because its timer is served by a softirq, which a busy machine puts
// off: the loop wakes up then, and looks at what the guard saw last, which needs no flush and no
// system call.

class GuardControl {
 public:
  // The guard assumes that memory fills this many times faster than estimated: its checks are
  // cheap.
  static constexpr std::int64_t kEarlyShare = 16;
  static constexpr Duration kCeiling = std::chrono::milliseconds(100);
  // The guard wakes the loop when this many eighths of the memory that was left are used, less what
  // its counters may lag.
  static constexpr std::int64_t kEighths = 7;
  static constexpr Duration kLag = std::chrono::milliseconds(250);
  // Near a threshold the guard looks as often as the loop could, and wakes it. As long as its looks
  // come in time it is relied on for so long; what may be missing is this many of them.
  static constexpr Duration kReliedOn = std::chrono::milliseconds(50);
  static constexpr int kMissedLooks = 3;
  // After the guard's sum has moved apart from memory.stat, it must agree in so many turns.
  static constexpr int kAgreements = 10;

  // Null: there is no guard. `lag`: what the counters of its nodes may lack.
  explicit GuardControl(observe::MemoryAlarm* alarm, Bytes lag = {}) : alarm_(alarm), lag_(lag) {}

  // From the next set() on.
  void set_lag(Bytes lag) { lag_ = lag; }

  // After a turn: `left` is the memory that may be used until the nearest threshold (absent: there
  // is none), `memory` the turn's reading of memory.available. True: the guard will wake the loop.
  bool set(Instant at, const Policy& policy, std::optional<Bytes> left,
           const std::optional<Observation>& memory = std::nullopt);
  // Until when the loop need not look: by what the guard saw last, memory cannot have reached what
  // set() was given, or the guard would wake the loop. Absent: it is not set, or memory is there.
  std::optional<Instant> safe_until(const Policy& policy, Instant now) const;

 private:
  bool is_checking(Instant at);
  bool agrees(const Policy& policy, const std::optional<Observation>& memory);

  observe::MemoryAlarm* alarm_;
  Bytes lag_;
  bool trusted_ = false;
  bool armed_ = false;
  observe::MemoryAlarm::Look wake_at_{};  // the sums, either of which makes the guard wake the loop
  Instant last_check_at_;                 // when a new check of the guard was last seen
  std::uint64_t checks_ = 0;              // the guard's number of checks then
  // The guard's working set less that of memory.stat: pages that are charged to no cgroup.
  std::optional<std::int64_t> difference_;
  int agreements_ = kAgreements;
  std::optional<std::int64_t> agreed_;  // the difference when they last agreed in enough turns
  int turns_apart_ = 0;                 // for how many turns it has been another one
};

class NodeSources {
 public:
  NodeSources(const observe::CgroupRoot& root, const config::Config& config,
              const observe::Filesystems& filesystems, ObserveSources opened,
              KernelEventHandler::Setup on_event);

  observe::HostObserver& observer() { return observer_; }
  const observe::HostObserver& observer() const { return observer_; }
  const InventoryCgroupNames& names() const { return names_; }
  // Null: the kernel reports no events of cgroups and processes.
  observe::LifecycleWatch* lifecycle() const { return lifecycle_.get(); }

  // Readable when the guard saw memory fall below the mark; -1: there is no guard.
  int guard_descriptor() const { return guard_ ? guard_->descriptor() : -1; }
  void drain_guard() { guard_->drain(); }
  // After a turn. Returns true if the guard watches memory until the next one.
  bool set_guard(const Policy& policy, std::optional<Bytes> left,
                 const std::optional<Observation>& memory);
  // As GuardControl::safe_until().
  std::optional<Instant> memory_is_safe_until(const Policy& policy, Instant now) const {
    return guard_control_.safe_until(policy, now);
  }

  // Readable when the kernel reports events; -1: it reports none.
  int events_descriptor() const { return lifecycle_ ? lifecycle_->descriptor() : -1; }
  // Handles the events; returns by when they require a sweep; absent: they do not.
  std::optional<Instant> read_events();
  // Stops reporting exits of processes of these ended evictions.
  void forget_exits(std::span<const EvictionEnd> ends);

  // Compares the cgroup source with the cgroup files if the last comparison is `period` ago; takes
  // some milliseconds. Returns true if it did.
  bool self_check(Duration period);
  // Logs a failing sweep once, and once more when sweeps work again.
  void log_new_error();

  report::Sources group_sources() const { return source_->group_sources(); }
  report::Programs programs() const;
  // Adds the losses of the observing parts to `losses`.
  void count_losses(report::NodeReporter::Losses& losses) const;

 private:
  observe::BestSource* source_;        // owned by observer_
  const observe::KernelWaits* waits_;  // owned by observer_
  observe::HostObserver observer_;
  InventoryCgroupNames names_;
  KernelEventHandler events_;
  std::unique_ptr<observe::LifecycleWatch> lifecycle_;
  std::unique_ptr<observe::MemoryGuard> guard_;
  GuardControl guard_control_;
  Instant self_checked_at_;
  std::string logged_error_;  // the latest error of a sweep that was logged
};

}  // namespace headroom::daemon
