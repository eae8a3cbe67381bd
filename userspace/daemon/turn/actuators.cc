// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/actuators.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/config/running_config.h"
#include "daemon/state/load_former.h"
#include "judge/eviction/selection.h"
#include "observe/cgroup/cgroup_files.h"

#include <headroom/cgroup_record.h>

#include <array>
#include <utility>

namespace headroom::daemon {
namespace {

// The hard threshold of memory.available in bytes; absent: not configured, or not known.
std::optional<std::int64_t> hard_limit(const Policy& policy, const Verdict& verdict) {
  for (const ThresholdReading& reading : verdict.thresholds) {
    const Threshold& threshold = policy.thresholds[reading.index];
    if (threshold.signal == Signal::kMemoryAvailable && threshold.hard()) return reading.limit;
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_working_set(int directory) {
  auto files = observe::CgroupFiles::open(directory, ".");
  if (!files) return std::nullopt;
  hr_record record = unknown_record(files->id(), 0);
  observe::DescriptorBudget budget{observe::CgroupFiles::kFiles};
  std::array<char, 8192> buffer;
  if (!files->read(HR_MEMORY_USAGE | HR_MEMORY_STAT, false, buffer, budget, record))
    return std::nullopt;
  const auto held = working_set(record);
  return held ? std::optional(held->count) : std::nullopt;
}

}  // namespace

FailsafeList::FailsafeList(act::HostActuator& actuator, const std::filesystem::path& cgroup_root)
    : actuator_(actuator),
      memory_({.cgroup_root = cgroup_root}),
      sentinel_({.read_memory =
                     [this] {
                       Observations all{};
                       memory_.read_memory(all);
                       return of(all, Signal::kMemoryAvailable);
                     },
                 .working_set = &read_working_set,
                 .now = &observe::now,
                 .reaper = &actuator.reaper()}) {}

void FailsafeList::reconfigure(const Policy& policy) {
  policy_ = policy;
  updated_at_.reset();
  first_.reset();
  // The old list was made by the old policy, and the new policy may have no hard threshold. The
  // next sweep, which follows at once, makes the new list.
  sentinel_.set_failsafe_list(0, {});
}

std::span<const Decision> FailsafeList::update(const Snapshot& snapshot, const Verdict& verdict) {
  if (!snapshot.cgroups) return {};
  if (updated_at_ && snapshot.at - *updated_at_ < kPeriod && !snapshot.cgroups_changed) return {};
  const auto limit = hard_limit(policy_, verdict);
  if (!limit) return {};
  updated_at_ = snapshot.at;
  list_ = judge_eviction::rank_for_failsafe(policy_, snapshot, verdict.after, kMax);
  first_ = list_.empty() ? nullptr : list_.front().pod;
  if (policy_.mode == Mode::kEnforce)
    sentinel_.set_failsafe_list(*limit, actuator_.open_failsafe_list(list_));
  return list_;
}

SerialTasks::~SerialTasks() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SerialTasks::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
}

void SerialTasks::run() {
  report::set_thread_name("restore");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    log::log_exceptions("restore limits", task);
    lock.lock();
  }
}

Actuators::Actuators(const std::filesystem::path& cgroup_root, const config::Config& config,
                     NodeSources& sources)
    : memory_high_file_(act::memory_high_file(config.state_dir)),
      suspended_limits_file_(act::suspended_limits_file(config.state_dir)),
      suspended_limits_(
          std::make_shared<act::SuspendedLimits>([this](const act::SuspendedLimits::Found& found) {
            return suspended_limits_file_.save(found);
          })),
      memory_high_overrides_(std::make_shared<act::MemoryHighOverrides>(
          cgroup_root,
          [this](const act::MemoryHighOverrides::Found& found) {
            return memory_high_file_.save(found);
          },
          [limits = suspended_limits_](CgroupId cgroup) {
            return limits->is_lifted(cgroup, "memory.high");
          })),
      host_(
          [&inventory = sources.observer().inventory()](CgroupId id) {
            const observe::KnownCgroup* known = inventory.find(id);
            return known ? known->directory.get() : -1;
          },
          &observe::now, actuator_options_of(config), suspended_limits_),
      failsafe_list_(host_, cgroup_root),
      exit_watching_(host_, sources.lifecycle(), failsafe_list_),
      dry_(&observe::now, &exit_watching_) {
  host_.set_memory_high_overrides(memory_high_overrides_);
  failsafe_list_.reconfigure(config.policy);
}

Actuator& Actuators::for_mode(Mode mode) {
  if (mode == Mode::kEnforce) return exit_watching_;
  return dry_;
}

// On a thread, because systemd may answer late. Suspended limits are restored first: memory.high is
// then as the ladder had set it. Where that fails its original value is kept, and tried again
// later.
void Actuators::restore_former_limits() {
  auto suspended = load_former(suspended_limits_file_, "limits of the killed cgroups");
  auto overridden = load_former(memory_high_file_, "values of memory.high");
  if (suspended.empty() && overridden.empty()) return;
  if (!suspended.empty()) log::info("restoring the limits of {} killed cgroups", suspended.size());
  if (!overridden.empty()) log::info("restoring memory.high of {} cgroups", overridden.size());
  restores_.submit([limits = suspended_limits_, overrides = memory_high_overrides_,
                    suspended = std::move(suspended), overridden = std::move(overridden)] {
    limits->restore_all(suspended);
    overrides->restore_all(overridden);
  });
}

void Actuators::reconfigure(const config::Config& config) {
  host_.use(actuator_options_of(config));
  failsafe_list_.reconfigure(config.policy);
  // In mode observe no limit is changed, and no step that restores one is carried out.
  if (config.policy.mode == Mode::kEnforce) return;
  // On the thread: held() waits for a restore in progress, which may wait for systemd.
  restores_.submit([limits = suspended_limits_, overrides = memory_high_overrides_] {
    if (overrides->held() == 0) return;
    limits->restore_all();
    overrides->restore_all();
  });
}

report::NodeReporter::KillAssists Actuators::kill_assists() const {
  const act::ReaperCounts counts = host_.reaper_counters();
  return {.limits_lifted = counts.limits_lifted,
          .boosted = counts.boosted,
          .missed = counts.dropped,
          .reaped = counts.reaped,
          .hangs = failsafe_list_.hangs(),
          .sentinel_kills = failsafe_list_.kills()};
}

}  // namespace headroom::daemon
