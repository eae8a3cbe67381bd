// SPDX-License-Identifier: Apache-2.0
#include "daemon/app.h"

#include "base/clock.h"
#include "base/human_readable.h"
#include "base/log/journal.h"
#include "daemon/servers.h"
#include "daemon/status/node_status_tracker.h"
#include "daemon/turn/allocation_count.h"
#include "judge/eviction/next_check.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace headroom::daemon {
namespace {

void make_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) log::warning("create {}: {}", directory.native(), error.message());
}

std::string name_of(const hr_event& event) {
  return printable({event.comm, strnlen(event.comm, sizeof event.comm)});
}

// Whether `cgroup` is the pods' cgroup or one of its ancestors.
bool contains_pods_cgroup(std::string_view cgroup, const std::string& pods_cgroup) {
  const std::string pods = "/" + pods_cgroup;
  return !cgroup.empty() && pods.starts_with(cgroup) &&
         (pods.size() == cgroup.size() || pods[cgroup.size()] == '/');
}

std::filesystem::path unwritten_audit_log(const config::Config& config) {
  return config.state_dir / "evictions-unwritten.jsonl";
}

}  // namespace

Result<std::unique_ptr<App>> App::start(config::Config config, observe::CgroupRoot root,
                                        observe::Manifests manifests) {
  std::optional<EnforceLock> lock;
  if (config.policy.mode == Mode::kEnforce) {
    auto taken = EnforceLock::take_for_node(root.mount);
    if (!taken) return tl::make_unexpected(taken.error());
    lock.emplace(std::move(*taken));
  } else if (const auto holder = enforce_lock_holder(root.mount)) {
    use_state_of_an_observer(config);
    log::info("{} is in mode enforce on this node; this daemon only observes, with its state in {}",
              *holder, config.state_dir.string());
  }
  auto sources = open_sources(root, config.bpf);
  if (!sources) return tl::make_unexpected(sources.error());
  make_directory(config.state_dir);
  std::unique_ptr<App> app(
      new App(std::move(config), root, std::move(lock), std::move(*sources), std::move(manifests)));
  if (auto started = app->workers_.reconfigure(app->config()); !started)
    return tl::make_unexpected(started.error());
  app->start_servers();
  app->actuators_.restore_former_limits();
  app->engine_.resume(app->eviction_state_.load_victims([&] {
    return report::recorded_evictions(app->config().audit_log, unwritten_audit_log(app->config()));
  }));
  app->engine_.resume(app->eviction_state_.load_taint_timers());
  return app;
}

App::App(config::Config config, const observe::CgroupRoot& root, std::optional<EnforceLock> lock,
         ObserveSources sources, observe::Manifests manifests)
    : root_(root),
      config_(std::move(config), root.mount, std::move(lock)),
      sources_(root, config_.get(), config_.filesystems(), std::move(sources), event_setup()),
      workers_(root),
      node_status_(status_setup()),
      shadow_(config_.policy()),
      reporter_(reporter_setup()),
      system_use_(sources_.names(), config_.get()),
      recorder_(config_.policy(), &system_use_, workers_.limit_plans()),
      actuators_(root.mount, config_.get(), sources_),
      eviction_state_(config_.get().state_dir),
      engine_(config_.policy(), sources_.observer(), actuators_.for_mode(config_.policy().mode),
              TurnMeter(&observe::now, &thread_allocation_count),
              SweepSchedule(&observe::thread_cpu_time)) {
  engine_.set_cpu_budget(config_.get().cpu_budget);
  sources_.observer().apply_policy(config_.policy());
  sources_.observer().watch_without_swap(config_.get().thrash_aware);
  set_declared_pods(std::move(manifests));
  reporter_.set_sources(sources_.group_sources());
  node_status_.reconfigure(node_options_of(config_.get()), config_.policy());
}

void App::start_servers() {
  forecast_worker_.emplace(views_, config().state_dir);
  const bool serves_http = !config().listen.empty();
  servers_.start(config(), bus_setup(),
                 serves_http ? make_router(config(), views_, workers_.cpus_view(), admissions_,
                                           workers_.container_names(), reload_status_,
                                           config_.filesystems(), root_.mount.string())
                             : nullptr);
}

// What happens in a turn, in this order.
Instant App::turn(report::WakeSource wake) {
  engine_.start(wake);
  engine_.collect_outcomes();
  engine_.observe_and_judge(observe::now());
  engine_.act();
  Instant next = engine_.plan();

  const Snapshot& snapshot = engine_.snapshot();
  const Verdict& verdict = engine_.verdict();
  pass_counters_to_reporter();
  node_status_.update(snapshot, verdict, engine_.outcomes());
  reporter_.record_shadow(shadow_.update(snapshot, verdict));
  engine_.outcomes_reported();
  reporter_.report_turn(snapshot, verdict, engine_.outcomes());
  FailsafeList& failsafe = actuators_.failsafe_list();
  const auto ranking = failsafe.update(snapshot, verdict);
  if (!ranking.empty()) workers_.mirror_oom_scores(config(), snapshot, ranking, sources_.names());
  workers_.watch_pod_memory(config(), snapshot, verdict, sources_.names());
  workers_.watch_quotas(config(), snapshot, sources_.names());
  workers_.suppress_pods(config(), snapshot, sources_.names());
  workers_.limit_pod_swap(config(), snapshot, sources_.names());
  recorder_.record_turn(snapshot, verdict, engine_.outcomes());

  sources_.observer().set_limits(config_.policy(), verdict);
  sources_.forget_exits(verdict.eviction_ends);
  next = set_guard(next);
  engine_.commit();
  failsafe.beat(next);
  // After the actions: a disk that hangs delays the next turn, not this kill.
  eviction_state_.save(engine_.history(), reporter_.evictions_are_kept());
  sources_.log_new_error();
  follow_online_cpus();
  self_check_if_idle(next);
  return next;
}

// While the guard watches memory, a turn that is due for memory alone is put off; one that is due
// very soon by a look at what the guard saw (put_off_turn()).
Instant App::set_guard(Instant next) {
  const Snapshot& snapshot = engine_.snapshot();
  const auto left = judge_eviction::memory_left(config_.policy(), engine_.verdict());
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  guarded_until_.reset();
  if (!sources_.set_guard(config_.policy(), left, memory)) return next;
  guarded_until_ = engine_.next_guarded();
  return next - snapshot.at >= GuardControl::kLag ? *guarded_until_ : next;
}

std::optional<Instant> App::put_off_turn(Instant now) {
  if (!guarded_until_ || now >= *guarded_until_) return std::nullopt;
  const auto safe = sources_.memory_is_safe_until(config_.policy(), now);
  if (!safe || *safe - now < config_.policy().check_floor) return std::nullopt;
  const Instant next = std::min(*safe, *guarded_until_);
  actuators_.failsafe_list().beat(next);
  return next;
}

void App::pass_counters_to_reporter() {
  reporter_.record(engine_.cost());
  reporter_.set_missing_readings(sources_.observer().missing_readings());
  report::NodeReporter::Losses losses{.notices = servers_.lost_signals(),
                                      .recorded = recorder_.lost()};
  sources_.count_losses(losses);
  reporter_.set_losses(losses);
  reporter_.set_programs(sources_.programs());
  workers_.report_to(reporter_);
  reporter_.set_kill_assists(actuators_.kill_assists());
}

// CPUs that were plugged in fill memory, too.
void App::follow_online_cpus() {
  const std::int64_t before = std::exchange(cpus_, sources_.observer().cpus());
  if (before != 0 && before != cpus_ && config_.adopt_online_cpus()) propagate_policy();
}

// The self-check takes some milliseconds, so it runs only while no threshold is near.
void App::self_check_if_idle(Instant next_turn) {
  const bool is_idle = engine_.history().victims.empty() &&
                       next_turn - observe::now() > config_.policy().check_ceiling / 2;
  if (is_idle && sources_.self_check(config().self_check_period))
    reporter_.set_sources(sources_.group_sources());
}

void App::set_declared_pods(observe::Manifests manifests) {
  workers_.set_declared_pods(manifests);
  sources_.observer().set_declared_pods(std::move(manifests.pods), manifests.of_kubelet,
                                        !config().kubernetes.kubelet.url.empty());
}

NodeStatusTracker::Setup App::status_setup() {
  return {
      .on_change =
          [this](const report::NodeStatusRef& status) {
            reporter_.set_status(status);
            servers_.submit_status(status);
          },
      .on_capacity =
          [this](const Amounts& capacity, const std::vector<std::shared_ptr<const Pod>>& active) {
            workers_.update_slices(config(), capacity, active);
          },
      .machine = &machine_amounts,
      .wall_clock =
          [] {
            return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
          }};
}

// These functions are called on the thread of the bus.
report::DbusSetup App::bus_setup() {
  return {
      .views = views_,
      .qos_of = &qos_class,
      .admit =
          [this](const std::string& manifest) {
            return admit_json(node_status_.current(), manifest);
          },
      .admit_to_start =
          [this](const std::string& manifest) {
            return admit_to_start_json(node_status_.current(), manifest, *admissions_);
          },
      .taint = [this](const std::vector<std::string>& edits,
                      bool overwrite) { return taint_json(config_.taints(), edits, overwrite); },
      .cpus = [view = workers_.cpus_view()] { return cpus_response_json(*view); },
      .memory = [view = workers_.cpus_view()] { return memory_response_json(*view); },
      .repack = [queue = workers_.repack_queue()](bool dry_run) { return queue->submit(dry_run); },
      .record = [this](int pipe,
                       std::chrono::seconds length) { return recorder_.start(Fd(pipe), length); },
      .config = [this] { return config_.settings().json(); },
      .kubernetes = config().kubernetes.status_file()};
}

report::ReporterSetup App::reporter_setup() {
  return {.views = views_,
          .policy = config_.policy(),
          .audit_log = config().audit_log,
          .unwritten_audit_log = unwritten_audit_log(config()),
          .names = &sources_.names(),
          .qos_of = &qos_class,
          .on_evicted = [this](const report::Eviction& eviction) { servers_.evicted(eviction); },
          .on_properties_changed = [this] { servers_.properties_changed(); }};
}

KernelEventHandler::Setup App::event_setup() {
  return {.is_victim = [this](CgroupId id) { return is_victim(id); },
          .oom_kill = [this](const hr_event& event) { report_oom_kill(event); },
          .exited = [this](const hr_event&) { reporter_.count_victim_exit(); }};
}

bool App::is_victim(CgroupId id) const {
  const auto& victims = engine_.history().victims;
  return std::any_of(victims.begin(), victims.end(), [&](const Victim& victim) {
    const CgroupId cgroup = victim.part.whole() ? victim.cgroup : victim.part.cgroup;
    return cgroup == id && victim.part.unit != EvictionUnit::kProcess &&
           (victim.phase == Victim::Phase::kTerminating || victim.phase == Victim::Phase::kKilled);
  });
}

std::optional<Instant> App::read_events() {
  const auto due = sources_.read_events();
  if (!due) return due;
  engine_.request_sweep_by(*due);
  if (guarded_until_) guarded_until_ = engine_.next_guarded();
  return due;
}

void App::report_oom_kill(const hr_event& event) {
  const CgroupId cgroup{event.cgroup};
  const InventoryCgroupNames& names = sources_.names();
  report::KernelOomKill kill{.cgroup = cgroup,
                             .path = std::string(names.path_of(cgroup)),
                             .pod = sources_.observer().pod_of(cgroup),
                             .pid = event.pid,
                             .comm = name_of(event),
                             .limit_of = std::nullopt,
                             .limit_path = {},
                             .limit_of_pods = false,
                             .would_evict = actuators_.failsafe_list().first()};
  if (event.other) {
    kill.limit_of = CgroupId{event.other};
    kill.limit_path = names.path_of(*kill.limit_of);
    kill.limit_of_pods = contains_pods_cgroup(kill.limit_path, config().pods_cgroup);
  }
  reporter_.record_kernel_oom(kill, observe::now());
}

void App::apply_taint_edits() {
  config_.adopt_taint_edits();
  propagate_policy();
}

// Passes the policy to every part that keeps a copy of it.
void App::propagate_policy() {
  engine_.reconfigure(config_.policy());
  engine_.use(actuators_.for_mode(config_.policy().mode));
  reporter_.reconfigure(config_.policy());
  sources_.observer().apply_policy(config_.policy());
  actuators_.reconfigure(config());
  shadow_.reconfigure(config_.policy());
  recorder_.reconfigure(config_.policy());
  node_status_.reconfigure(node_options_of(config()), config_.policy());
}

void App::reconfigure(config::Config config) {
  const Duration old_window = config_.policy().pressure_window;
  config_.adopt(std::move(config));
  log::set_level(config_.get().log_level);
  if (config_.policy().pressure_window != old_window)
    sources_.observer().set_pressure_window(config_.policy().pressure_window);
  sources_.observer().watch_without_swap(config_.get().thrash_aware);
  system_use_.reconfigure(config_.get());
  engine_.set_cpu_budget(config_.get().cpu_budget);
  propagate_policy();
  if (auto started = workers_.reconfigure(config_.get()); !started)
    log::error("{}", started.error().what);
  config_.release_unused_lock();
}

}  // namespace headroom::daemon
