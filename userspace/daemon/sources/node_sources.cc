// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/node_sources.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "daemon/config/derived_config.h"
#include "daemon/sources/pod_containers.h"
#include "daemon/sources/runtime_container_names.h"

#include <unistd.h>

#include <utility>

namespace headroom::daemon {
namespace {

observe::HostObserver::Parts observer_setup(const observe::CgroupRoot& root,
                                            const config::Config& config,
                                            const observe::Filesystems& filesystems,
                                            ObserveSources opened) {
  return {.node = observe::NodeSource({.cgroup_root = root.mount,
                                       .nodefs = filesystems.nodefs,
                                       .imagefs = filesystems.imagefs,
                                       .containerfs = filesystems.containerfs}),
          .cgroups = std::move(opened.source),
          .inventory = std::move(opened.inventory),
          .pods_cgroup = config.pods_cgroup,
          .waits = std::move(opened.waits),
          .pressure_window = config.policy.pressure_window,
          .cpus = sysconf(_SC_NPROCESSORS_ONLN),
          .disks = std::make_unique<observe::DiskMeter>(disk_meter_options(config)),
          .cgroup_root = root.mount,
          .images = filesystems.images,
          .container_at = [names = std::make_shared<RuntimeContainerNames>()](
                              const Pod& pod, std::string_view path) {
            return container_at(pod, path, *names);
          }};
}

}  // namespace

NodeSources::NodeSources(const observe::CgroupRoot& root, const config::Config& config,
                         const observe::Filesystems& filesystems, ObserveSources opened,
                         KernelEventHandler::Setup on_event)
    : source_(opened.source.get()),
      waits_(opened.waits.get()),
      observer_(observer_setup(root, config, filesystems, std::move(opened))),
      names_(observer_.inventory()),
      events_(std::move(on_event)),
      lifecycle_(watch_lifecycle(config.bpf, *source_,
                                 [this](const hr_event& event) { events_.take(event); })),
      guard_(guard_memory(config.bpf, *source_)),
      guard_control_(guard_.get()),
      self_checked_at_(observe::now()) {}

std::optional<Instant> NodeSources::read_events() {
  lifecycle_->drain();
  return events_.due();
}

void NodeSources::forget_exits(std::span<const EvictionEnd> ends) {
  if (!lifecycle_) return;
  for (const EvictionEnd& end : ends)
    lifecycle_->forget_exits(end.part.whole() ? end.cgroup : end.part.cgroup);
}

bool NodeSources::self_check(Duration period) {
  if (observe::now() - self_checked_at_ < period) return false;
  if (source_->recheck()) log_source(*source_);
  self_checked_at_ = observe::now();
  return true;
}

void NodeSources::log_new_error() {
  if (observer_.trouble() == logged_error_) return;
  logged_error_ = observer_.trouble();
  if (logged_error_.empty())
    log::info("the cgroups are read again");
  else
    log::error("{}: no cgroup is known until the next sweep", logged_error_);
}

report::Programs NodeSources::programs() const {
  report::Programs programs;
  programs[0].name = "stall";
  programs[1].name = "throttle";
  programs[2].name = "lifecycle";
  programs[3].name = "guard";
  if (const auto* stalls = waits_->stalls()) {
    programs[0].hook = stalls->complete() ? "memstall" : "reclaim";
    programs[0].lost_in_map = stalls->lost();
  }
  if (const auto* throttles = waits_->throttles()) {
    programs[1].hook = "cfs_rq";
    programs[1].lost_in_map = throttles->lost();
  }
  if (lifecycle_) {
    programs[2].hook = "cgroup";
    programs[2].lost_in_map = lifecycle_->unwatched();
    programs[2].lost_in_ring = lifecycle_->lost();
  }
  if (guard_) {
    programs[3].hook = "timer";
    programs[3].lost_in_map = guard_->arm_failures();
    programs[3].lost_in_ring = guard_->lost();
  }
  return programs;
}

void NodeSources::count_losses(report::NodeReporter::Losses& losses) const {
  losses.cgroups = source_->lost();
  losses.unresolved = observer_.inventory().unresolved();
}

}  // namespace headroom::daemon
