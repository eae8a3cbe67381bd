// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/node_sources.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/config/running_config.h"
#include "daemon/sources/pod_containers.h"
#include "daemon/sources/runtime_container_names.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::daemon {
namespace {

using config::BpfUse;

constexpr auto kLibbpfLog = [](std::string_view line) { log::debug("libbpf: {}", line); };

void log_skipped_programs(std::string_view what,
                          const std::vector<observe::SkippedProgram>& skipped_programs) {
  for (const observe::SkippedProgram& each : skipped_programs)
    log::warning("{}: not all is seen: {}: {}", what, each.program, each.why);
}

// The programs beside the sweep's.
struct WatchPrograms {
  Result<std::unique_ptr<observe::StallWatch>> stalls;
  Result<std::unique_ptr<observe::ThrottleWatch>> throttles;
  Result<std::unique_ptr<observe::LifecycleWatch>> lifecycle;
  Result<std::unique_ptr<observe::MemoryGuard>> guard;
};

WatchPrograms load_watch_programs() {
  report::set_thread_name("load");
  observe::WaitOptions waits;
  waits.log = kLibbpfLog;
  return {.stalls = observe::watch_stalls(waits),
          .throttles = observe::watch_throttles(waits),
          .lifecycle = observe::LifecycleWatch::open({.log = kLibbpfLog}),
          .guard = observe::MemoryGuard::open({.log = kLibbpfLog})};
}

// Null, and logged with the consequence, if it could not be loaded.
template <class Watch>
std::unique_ptr<Watch> loaded_or_null(Result<std::unique_ptr<Watch>> watch, log::Level level,
                                      std::string_view consequence) {
  if (watch) return std::move(*watch);
  log::write(level, fmt::format("{}: {}", watch.error().what, consequence));
  return nullptr;
}

// `level`: of what is missing.
void add_watches(WatchPrograms loaded, log::Level level, ObserveSources& sources) {
  auto stalls = loaded_or_null(std::move(loaded.stalls), level,
                               "waits for memory and their causes are unknown");
  if (stalls) log_skipped_programs("stalls", stalls->skipped_programs());
  sources.waits = std::make_unique<observe::KernelWaits>(
      std::move(stalls), loaded_or_null(std::move(loaded.throttles), level,
                                        "how long the waits for CPU quota are is not known"));
  sources.lifecycle = loaded_or_null(std::move(loaded.lifecycle), level, "the next pass finds out");
  if (sources.lifecycle)
    log_skipped_programs("cgroups' lives", sources.lifecycle->skipped_programs());
  sources.guard =
      loaded_or_null(std::move(loaded.guard), level, "the loop looks in time by itself");
}

}  // namespace

void log_source(const observe::BestSource& source) {
  const std::string source_notes = fmt::format("{}", fmt::join(source.source_notes(), "; "));
  if (source.bpf())
    log::info("cgroups are read through {} ({})", source.name(), source_notes);
  else
    log::warning("cgroups are read from files ({}): the same decisions at more CPU time",
                 source_notes);
}

Result<ObserveSources> open_sources(const observe::CgroupRoot& root, BpfUse bpf) {
  const auto kernel_types = bpf == BpfUse::kNone ? nullptr : observe::kernel_types();
  // On a thread of its own: libbpf reads the kernel's types for each program anew, and that takes
  // most of the start.
  std::future<WatchPrograms> watches;
  if (bpf != BpfUse::kNone) watches = std::async(std::launch::async, load_watch_programs);
  observe::BestSource::Options options;
  options.root = root.mount;
  options.bpf = bpf == BpfUse::kAll;
  options.log = kLibbpfLog;
  auto source = observe::BestSource::open(options);
  if (!source) return tl::make_unexpected(source.error());
  auto inventory = observe::CgroupInventory::open(root.mount);
  if (!inventory) return tl::make_unexpected(inventory.error());
  log_source(**source);
  // If no BPF program can be loaded, that was already logged in one line.
  const bool is_news = (*source)->bpf() || bpf == BpfUse::kEvents;
  ObserveSources sources{.source = std::move(*source),
                         .inventory = std::move(*inventory),
                         .waits = std::make_unique<observe::KernelWaits>(nullptr, nullptr),
                         .lifecycle = nullptr,
                         .guard = nullptr};
  if (watches.valid())
    add_watches(watches.get(), is_news ? log::Level::warn : log::Level::debug, sources);
  return sources;
}

void KernelEventHandler::take(const hr_event& event) {
  const Instant at{Duration(static_cast<std::int64_t>(event.at_ns))};
  const CgroupId cgroup{event.cgroup};
  const auto sweep_by = [&](Instant by) { due_ = due_ ? std::min(*due_, by) : by; };
  switch (static_cast<hr_event_kind>(event.kind)) {
    case HR_EVENT_CREATED:
      return sweep_by(at + kBatchDelay);
    case HR_EVENT_UNPOPULATED:
      // Victims are awaited; for other cgroups the next pass is soon enough.
      if (setup_.is_victim(cgroup)) sweep_by(at);
      return;
    case HR_EVENT_REMOVED:
      return sweep_by(setup_.is_victim(cgroup) ? at : at + kBatchDelay);
    case HR_EVENT_OOM_KILL:
      return setup_.oom_kill(event);
    case HR_EVENT_EXIT:
      return setup_.exited(event);
  }
}

std::optional<Instant> KernelEventHandler::due() {
  return std::exchange(due_, std::nullopt);
}

namespace {

// Longer than a turn is ever put off.
constexpr std::chrono::duration<double> kLongest{3600};
// What two readings of a small machine may differ by.
constexpr std::int64_t kMinTolerance = std::int64_t{32} << 20;
// A counter of a node lacks at most this on each CPU (calculate_normal_threshold(), mm/vmstat.c).
constexpr std::int64_t kVmStatThreshold = 125;

std::int64_t online_cpus() {
  return sysconf(_SC_NPROCESSORS_ONLN);
}

Bytes lag_of_node_counters(std::int64_t cpus) {
  return Bytes{kVmStatThreshold * cpus * sysconf(_SC_PAGESIZE)};
}

}  // namespace

bool GuardControl::set(Instant at, const Policy& policy, std::optional<Bytes> left,
                       const std::optional<Observation>& memory) {
  if (!alarm_) return false;
  const bool checks = is_checking(at);
  if (checks != trusted_ && !checks) log::error("the guard of memory no longer looks");
  trusted_ = checks;
  const Bytes mark{left ? left->count / 8 * kEighths - lag_.count : 0};
  if (mark.count <= 0) {
    if (armed_) alarm_->disarm();
    armed_ = false;
    return false;
  }
  if (!armed_) last_check_at_ = at;
  armed_ = alarm_->arm(mark, {.bytes_per_second = kEarlyShare * policy.fastest_fill,
                              .floor = policy.check_floor,
                              .ceiling = kCeiling});
  if (!armed_) return false;
  wake_at_ = alarm_->latest_look();
  wake_at_.working_set.count += mark.count;
  wake_at_.available.count -= mark.count;
  return agrees(policy, memory) && trusted_;
}

std::optional<Instant> GuardControl::safe_until(const Policy& policy, Instant now) const {
  if (!armed_ || agreements_ < kAgreements) return std::nullopt;
  const observe::MemoryAlarm::Look look = alarm_->latest_look();
  const std::int64_t left = std::min(wake_at_.working_set.count - look.working_set.count,
                                     look.available.count - wake_at_.available.count);
  if (left <= 0) return std::nullopt;
  const std::chrono::duration<double> time{static_cast<double>(left) /
                                           static_cast<double>(policy.fastest_fill)};
  const auto until_full = std::chrono::duration_cast<Duration>(std::min(time, kLongest));
  const Duration period =
      std::max(policy.check_floor, std::min(until_full / kEarlyShare, kCeiling));
  const bool looks_in_time = now - look.at <= kMissedLooks * period;
  return std::max(look.at + until_full, looks_in_time ? now + kReliedOn : Instant{});
}

// A node that the guard does not add up, such as one that was plugged in and never used, shows when
// memory.stat moves and the guard's sum does not. Between the two readings memory may fill. What a
// killed pod gives back the guard sees at once and memory.stat later: only if they stay apart is it
// said.
bool GuardControl::agrees(const Policy& policy, const std::optional<Observation>& memory) {
  if (!memory) return agreements_ >= kAgreements;
  const observe::MemoryAlarm::Look look = alarm_->latest_look();
  const std::int64_t difference = look.working_set.count - (memory->capacity - memory->available);
  const std::chrono::duration<double> between = look.at - memory->at;
  const auto filled =
      static_cast<std::int64_t>(between.count() * static_cast<double>(policy.fastest_fill));
  const std::int64_t tolerance = kMinTolerance + 4 * lag_.count + std::max<std::int64_t>(filled, 0);
  const auto is_near = [&](std::int64_t other) {
    return std::abs(difference - other) <= tolerance;
  };
  if (difference_ && is_near(*difference_)) {
    agreements_ = std::min(agreements_ + 1, kAgreements);
  } else {
    if (difference_) agreements_ = 0;
    difference_ = difference;
  }
  const bool agree = agreements_ >= kAgreements;
  turns_apart_ = !agreed_ || is_near(*agreed_) ? 0 : turns_apart_ + 1;
  if (turns_apart_ == kAgreements)
    log::warning(
        "the guard's sum of memory and memory.stat have moved apart by {} KiB: "
        "the loop looks by itself until they agree",
        (difference - *agreed_) / 1024);
  if (agree) agreed_ = difference;
  return agree;
}

// False if the guard has not checked for several of its longest periods; while not armed, it need
// not check.
bool GuardControl::is_checking(Instant at) {
  if (const std::uint64_t checks = alarm_->checks(); checks != checks_) {
    checks_ = checks;
    last_check_at_ = at;
    return true;
  }
  return trusted_ && (!armed_ || at - last_check_at_ < 5 * kCeiling);
}

namespace {

observe::HostObserver::Parts observer_setup(const observe::CgroupRoot& root,
                                            const config::Config& config,
                                            const observe::Filesystems& filesystems,
                                            ObserveSources& opened) {
  return {.node = observe::NodeSource({.cgroup_root = root.mount,
                                       .nodefs = filesystems.nodefs,
                                       .imagefs = filesystems.imagefs,
                                       .containerfs = filesystems.containerfs}),
          .cgroups = std::move(opened.source),
          .inventory = std::move(opened.inventory),
          .pods_cgroup = config.pods_cgroup,
          .waits = std::move(opened.waits),
          .pressure_window = config.policy.pressure_window,
          .cpus = online_cpus(),
          .online_cpus = &online_cpus,
          .page_size = sysconf(_SC_PAGESIZE),
          .disks = std::make_unique<observe::DiskMeter>(disk_meter_options(config)),
          .cgroup_root = root.mount,
          .images = filesystems.images,
          .container_at = [names = std::make_shared<RuntimeContainerNames>()](
                              const Pod& pod,
                              std::string_view path) { return container_at(pod, path, *names); },
          .cpu_waits = std::make_unique<observe::CpuWaitSource>("/proc", root.mount)};
}

}  // namespace

NodeSources::NodeSources(const observe::CgroupRoot& root, const config::Config& config,
                         const observe::Filesystems& filesystems, ObserveSources opened,
                         KernelEventHandler::Setup on_event)
    : source_(opened.source.get()),
      waits_(opened.waits.get()),
      observer_(observer_setup(root, config, filesystems, opened)),
      names_(observer_.inventory()),
      events_(std::move(on_event)),
      lifecycle_(std::move(opened.lifecycle)),
      guard_(std::move(opened.guard)),
      guard_control_(guard_.get(), lag_of_node_counters(observer_.cpus())),
      self_checked_at_(observe::now()) {}

bool NodeSources::set_guard(const Policy& policy, std::optional<Bytes> left,
                            const std::optional<Observation>& memory) {
  guard_control_.set_lag(lag_of_node_counters(observer_.cpus()));
  return guard_control_.set(observe::now(), policy, left, memory);
}

std::optional<Instant> NodeSources::read_events() {
  lifecycle_->drain([this](const hr_event& event) { events_.take(event); });
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
