// SPDX-License-Identifier: Apache-2.0
#include "daemon/turn/actuators.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "base/process_stat.h"
#include "daemon/config/running_config.h"

#include <utility>

namespace headroom::daemon {

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
      memory_high_overrides_(std::make_shared<act::MemoryHighOverrides>(
          cgroup_root,
          [this](const act::MemoryHighOverrides::Found& found) {
            return memory_high_file_.save(found);
          })),
      suspended_limits_file_(act::suspended_limits_file(config.state_dir)),
      suspended_limits_(
          std::make_shared<act::SuspendedLimits>([this](const act::SuspendedLimits::Found& found) {
            return suspended_limits_file_.save(found);
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

// On a thread because systemd may take long to answer. Suspended limits come first: memory.high is
// then as the ladder had set it; otherwise it would look like a value that another program wrote.
void Actuators::restore_former_limits() {
  auto suspended = suspended_limits_file_.load();
  if (!suspended) {
    log::error("{}: the original limits of the killed cgroups are not known",
               suspended.error().what);
    suspended.emplace();
  }
  auto overridden = memory_high_file_.load();
  if (!overridden) {
    log::error("{}: the original values of memory.high are not known", overridden.error().what);
    overridden.emplace();
  }
  if (suspended->empty() && overridden->empty()) return;
  if (!suspended->empty())
    log::info("restoring the limits of {} killed cgroups", suspended->size());
  if (!overridden->empty()) log::info("restoring memory.high of {} cgroups", overridden->size());
  restores_.submit([limits = suspended_limits_, overrides = memory_high_overrides_,
                    suspended = std::move(*suspended), overridden = std::move(*overridden)] {
    limits->restore_all(suspended);
    overrides->restore_all(overridden);
  });
}

void Actuators::reconfigure(const config::Config& config) {
  host_.use(actuator_options_of(config));
  failsafe_list_.reconfigure(config.policy);
  // Mode observe changes no limit, and carries out no step that would restore one.
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
