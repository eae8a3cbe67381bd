// SPDX-License-Identifier: Apache-2.0
// NodeSources: everything the daemon observes the node with: the cgroup source, the kernel's
// events, the memory guard, and the observer that makes snapshots from them.
#pragma once

#include "base/clock.h"
#include "config/config.h"
#include "daemon/sources/cgroup_sources.h"
#include "daemon/sources/guard_control.h"
#include "daemon/sources/inventory_cgroup_names.h"
#include "daemon/sources/kernel_events.h"
#include "observe/best_source.h"
#include "observe/bpf/kernel_waits.h"
#include "observe/bpf/lifecycle_watch.h"
#include "observe/host_observer.h"
#include "observe/node/filesystems.h"
#include "report/reporter.h"

#include <headroom/judge.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

namespace headroom::daemon {

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

  // Readable when the guard saw memory fall below its mark; -1: there is no guard.
  int guard_descriptor() const { return guard_ ? guard_->descriptor() : -1; }
  void drain_guard() { guard_->drain(); }
  // After a turn. Returns true if the guard watches memory until the next one.
  bool set_guard(const Policy& policy, std::optional<Bytes> left) {
    return guard_control_.set(observe::now(), policy, left);
  }

  // Readable when the kernel reports events; -1: it reports none.
  int events_descriptor() const { return lifecycle_ ? lifecycle_->descriptor() : -1; }
  // Handles the events; returns by when they ask for a sweep, if they do.
  std::optional<Instant> read_events();
  // Stops reporting exits of processes of these evictions, which are over.
  void forget_exits(std::span<const EvictionEnd> ends);

  // Compares the cgroup source with the cgroup files if the last comparison is `period` ago; takes
  // some milliseconds. Returns true if it did.
  bool self_check(Duration period);
  // Logs a failing sweep once, and once more when sweeps work again.
  void log_new_error();

  report::Sources group_sources() const { return source_->group_sources(); }
  report::Programs programs() const;
  // Adds what was lost in observing to `losses`.
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
