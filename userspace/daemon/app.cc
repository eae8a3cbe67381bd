// SPDX-License-Identifier: Apache-2.0
#include "daemon/app.h"

#include "base/clock.h"
#include "base/log/journal.h"
#include "daemon/cpus/pod_containers.h"
#include "daemon/dbus_handlers.h"
#include "daemon/derived_config.h"
#include "daemon/http_setup.h"
#include "daemon/slices/slice_options.h"
#include "daemon/sources/runtime_container_names.h"
#include "daemon/status/node_options.h"
#include "daemon/turn/allocation_count.h"
#include "judge/eviction/next_check.h"
#include "judge/oom/oom_mirror.h"
#include "judge/resources/qos.h"
#include "observe/node/capacity.h"
#include "observe/node/memory_fill_rate.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace headroom::daemon {
namespace {

void make_directory(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) log::warning("create {}: {}", directory.native(), error.message());
}

// What a process calls itself, fit for a line of the log.
std::string name_of(const hr_event& event) {
  std::string name(event.comm, strnlen(event.comm, sizeof event.comm));
  for (char& letter : name)
    if (letter < ' ' || letter > '~') letter = '?';
  return name;
}

// The pods' cgroup, or one above it.
bool contains_pods_cgroup(std::string_view cgroup, const std::string& pods_cgroup) {
  const std::string pods = "/" + pods_cgroup;
  return !cgroup.empty() && pods.starts_with(cgroup) &&
         (pods.size() == cgroup.size() || pods[cgroup.size()] == '/');
}

bool mirrors_oom_scores(const config::Config& config) {
  return config.mirror_oom_scores && config.policy.mode == Mode::kEnforce;
}

}  // namespace

Result<std::unique_ptr<App>> App::start(config::Config config, observe::CgroupRoot root,
                                        observe::Manifests manifests) {
  std::optional<EnforceLock> lock;
  if (config.policy.mode == Mode::kEnforce) {
    auto taken = EnforceLock::take(root.mount);
    if (!taken) return tl::make_unexpected(taken.error());
    lock.emplace(std::move(*taken));
  } else if (const auto holder = enforce_lock_holder(root.mount)) {
    log::info("{} is in mode enforce on this node; this daemon observes beside it", *holder);
  }
  auto sources = open_sources(root, config.bpf);
  if (!sources) return tl::make_unexpected(sources.error());
  make_directory(config.state_dir);
  std::unique_ptr<App> node(
      new App(std::move(config), root, std::move(*sources), std::move(manifests)));
  node->lock_ = std::move(lock);
  if (auto result = node->start_slice_worker(); !result) return tl::make_unexpected(result.error());
  node->start_servers();
  node->restore_limits();
  node->resume();
  node->resume_timers();
  return node;
}

App::App(config::Config config, const observe::CgroupRoot& root, ObserveSources sources,
         observe::Manifests manifests)
    : root_(root),
      measured_fill_(observe::measure_fastest_fill()),
      filesystems_(filesystems_of(config)),
      taints_(config.state_dir),
      config_(
          with_current_taints(complete_config(std::move(config), measured_fill_, filesystems_))),
      source_(sources.source.get()),
      waits_(sources.waits.get()),
      observer_(
          {.node = observe::NodeSource({.cgroup_root = root.mount,
                                        .nodefs = filesystems_.nodefs,
                                        .imagefs = filesystems_.imagefs,
                                        .containerfs = filesystems_.containerfs}),
           .cgroups = std::move(sources.source),
           .inventory = std::move(sources.inventory),
           .pods_cgroup = config_.pods_cgroup,
           .waits = std::move(sources.waits),
           .pressure_window = config_.policy.pressure_window,
           .cpus = sysconf(_SC_NPROCESSORS_ONLN),
           .disks = std::make_unique<observe::DiskMeter>(disk_meter_options(config_)),
           .cgroup_root = root.mount,
           .images = filesystems_.images,
           .container_at = [names = std::make_shared<RuntimeContainerNames>()](
                               const Pod& pod,
                               std::string_view path) { return container_at(pod, path, *names); }}),
      names_(observer_.inventory()),
      views_(std::make_shared<report::PublishedViews>()),
      cpus_view_(std::make_shared<report::PublishedCpusView>()),
      repack_queue_(std::make_shared<RepackQueue>()),
      node_status_(status_setup()),
      reporter_(reporter_setup()),
      shadow_reporter_(reporter_, config_.policy),
      memory_high_file_(config_.state_dir),
      memory_high_overrides_(std::make_shared<act::MemoryHighOverrides>(
          root.mount,
          [this](const act::MemoryHighOverrides::Found& found) {
            return memory_high_file_.save(found);
          })),
      lifted_limits_file_(config_.state_dir),
      lifted_limits_(
          std::make_shared<act::SuspendedLimits>([this](const act::SuspendedLimits::Found& found) {
            return lifted_limits_file_.save(found);
          })),
      host_actuator_(
          [this](CgroupId id) {
            const observe::KnownCgroup* known = observer_.inventory().find(id);
            return known ? known->directory.get() : -1;
          },
          &observe::now, actuator_options_of(config_), lifted_limits_),
      dry_actuator_(&observe::now, &exit_tracking_actuator_),
      failsafe_list_(node_status_, host_actuator_, root.mount,
                     [this](const Snapshot& snapshot, std::span<const Decision> first) {
                       mirror_oom_scores(snapshot, first);
                     }),
      recorder_(failsafe_list_, config_.policy),
      events_({.is_victim = [this](CgroupId id) { return is_dying(id); },
               .oom_kill = [this](const hr_event& event) { report_oom_kill(event); },
               .exited = [this](const hr_event&) { reporter_.count_victim_exit(); }}),
      lifecycle_(watch_lifecycle(config_.bpf, *source_,
                                 [this](const hr_event& event) { events_.take(event); })),
      guard_(guard_memory(config_.bpf, *source_)),
      guard_control_(guard_.get()),
      exit_tracking_actuator_(host_actuator_, lifecycle_.get(), failsafe_list_),
      victims_file_(config_.state_dir),
      taint_timer_file_(config_.state_dir),
      engine_(config_.policy, observer_, actuator(), recorder_,
              TurnMeter(&observe::now, &thread_allocation_count),
              SweepSchedule(&observe::thread_cpu_time), [this](const report::TurnCost& cost) {
                reporter_.record(cost);
                reporter_.set_missing_readings(observer_.missing_readings());
                reporter_.set_losses({.cgroups = source_->lost(),
                                      .unresolved = observer_.inventory().unresolved(),
                                      .notices = bus_ ? bus_->lost() : 0,
                                      .recorded = recorder_.lost()});
                reporter_.set_programs(programs());
                if (slices_) reporter_.set_slices(slices_->current());
                if (oom_score_worker_) {
                  const act::OomScoreCounts scores = oom_score_worker_->counters();
                  reporter_.set_oom_scores(
                      {.written = scores.written, .gone = scores.gone, .failed = scores.failed});
                }
                const act::ReaperCounts assists = host_actuator_.reaper_counters();
                reporter_.set_kill_assists({.limits_lifted = assists.limits_lifted,
                                            .boosted = assists.boosted,
                                            .missed = assists.dropped,
                                            .reaped = assists.reaped,
                                            .hangs = failsafe_list_.hangs(),
                                            .sentinel_kills = failsafe_list_.kills()});
              }) {
  engine_.set_cpu_budget(config_.cpu_budget);
  host_actuator_.set_memory_high_overrides(memory_high_overrides_);
  observer_.apply_policy(config_.policy);
  set_declared_pods(std::move(manifests));
  active_settings_.set(config_.settings);
  publish_source();
  node_status_.reconfigure(node_options_of(config_), config_.policy);
  failsafe_list_.reconfigure(config_.policy);
  update_cpus();
  update_oom_score_worker();
}

void App::set_declared_pods(observe::Manifests manifests) {
  kubelet_container_names_->set(std::move(manifests.containers));
  manifests_ = manifests.pods;
  if (cpus_) cpus_->set_declared_pods(manifests.pods);
  observer_.set_declared_pods(std::move(manifests.pods), manifests.of_kubelet,
                              !config_.kubernetes.kubelet.url.empty());
}

// From now on, or no more: what is pinned then stays so. Turned off it only stops: to end it is to
// wait for it.
void App::update_cpus() {
  CpuManagerOptions options = cpu_manager_options_of(config_);
  if (options.cpus.mode != config_.cpus.mode)
    log::warning("headroom.cpus.mode is enforce, but headroom.mode observe: no CPU set is touched");
  if (cpus_)
    cpus_->reconfigure(std::move(options));
  else if (options.cpus.mode != config::CpusConfig::Mode::kOff)
    cpus_ = std::make_unique<CpuWorker>(root_.mount, config_.pods_cgroup, std::move(options),
                                        manifests_, kubelet_container_names_, cpus_view_,
                                        repack_queue_);
}

// Started where it is wanted, or a former daemon left something to put back; from then on it has
// nothing to do when it is not wanted.
void App::update_oom_score_worker() {
  const bool wanted = mirrors_oom_scores(config_);
  if (config_.mirror_oom_scores && !wanted)
    log::warning("headroom.oomScoreAdj is mirror, but headroom.mode observe: none is written");
  if (!oom_score_worker_ && (wanted || OomScoreFile::exists(config_.state_dir)))
    oom_score_worker_ = std::make_unique<OomScoreWorker>(root_.mount, config_.state_dir);
  if (oom_score_worker_ && !wanted) oom_score_worker_->request({});
}

void App::mirror_oom_scores(const Snapshot& snapshot, std::span<const Decision> first) {
  const auto& memory = of(snapshot.observations, Signal::kMemoryAvailable);
  if (!mirrors_oom_scores(config_) || !memory || memory->capacity <= 0) return;
  std::vector<OomScoreRequest> requests;
  for (const auto& [pod, value] :
       judge_eviction::mirrored_oom_scores(snapshot, first, Bytes{memory->capacity}))
    if (const auto path = names_.path_of(pod); !path.empty())
      requests.push_back({.pod = pod, .path = std::string(path), .value = value});
  oom_score_worker_->request(std::move(requests));
}

// With the taints in force: the configuration's as edited since.
config::Config App::with_current_taints(config::Config config) {
  if (auto result = taints_.configure(config.taints); !result)
    log::error("{}: taints edited by hand do not outlast this daemon", result.error().what);
  config.policy.taints = taints_.shared_taints();
  return config;
}

NodeStatusReporter::Setup App::status_setup() {
  return {
      .next = &shadow_reporter_,
      .on_change =
          [this](const report::NodeStatusRef& status) {
            reporter_.set_status(status);
            if (node_status_writer_) node_status_writer_->submit(status);
          },
      .on_capacity =
          [this](const Amounts& capacity, const std::vector<std::shared_ptr<const Pod>>& active) {
            if (slices_) slices_->submit(slice_options(config_, capacity, active));
          },
      .machine = &machine_amounts,
      .wall_clock =
          [] {
            return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
          }};
}

// Asked on the bus's thread.
report::DbusSetup App::bus_setup() {
  return {
      .views = views_,
      .qos_of = &qos_class,
      .admit =
          [this](const std::string& manifest) {
            return admit_json(node_status_.current(), manifest);
          },
      .taint = [this](const std::vector<std::string>& edits,
                      bool overwrite) { return taint_json(taints_, edits, overwrite); },
      .cpus = [cpus_view = cpus_view_] { return cpus_response_json(*cpus_view); },
      .repack = [queue = repack_queue_](bool dry_run) { return queue->submit(dry_run); },
      .record = [this](int pipe,
                       std::chrono::seconds length) { return recorder_.start(Fd(pipe), length); },
      .config = [this] { return active_settings_.json(); },
      .kubernetes = config_.kubernetes.status_file()};
}

report::ReporterSetup App::reporter_setup() {
  return {.views = views_,
          .policy = config_.policy,
          .audit_log = config_.audit_log,
          .names = &names_,
          .qos_of = &qos_class,
          .on_evicted = [this](const report::Eviction& eviction) {
            if (bus_) bus_->evicted(eviction);
          }};
}

// Made when first asked for; a reload may ask, and may turn it off again.
Result<> App::start_slice_worker() {
  const SlicesMode mode = slices_mode(config_);
  if (slices_ || mode == SlicesMode::kOff) return {};
  auto worker = SliceWorker::start(observe::SliceReader(root_.mount, root_.controllers),
                                   observe::possible_cpus(), mode);
  if (!worker) return tl::make_unexpected(worker.error());
  slices_ = std::move(*worker);
  return {};
}

// The windows others look through. Without one of them the node is kept all the same.
void App::start_servers() {
  if (!config_.node_status.empty())
    node_status_writer_ = std::make_unique<NodeStatusWriter>(config_.node_status);
  auto bus = report::DbusThread::start(bus_setup());
  if (bus)
    bus_ = std::move(*bus);
  else
    log::warning("D-Bus: {}; headroomctl cannot reach this daemon", bus.error().what);
  if (config_.listen.empty()) return;
  auto http = report::HttpServer::open(
      config_.listen, make_router(config_, views_, cpus_view_, kubelet_container_names_), {},
      heartbeat_);
  if (http)
    http_ = std::move(*http);
  else
    log::error("{}; metrics are not served", http.error().what);
}

// What an earlier daemon did not restore because it ended too soon. On a thread of its own: systemd
// may take its time. Lifted limits first: memory.high is then what the ladder had set, or it would
// look like somebody else's value.
void App::restore_limits() {
  auto lifted = lifted_limits_file_.load();
  if (!lifted) {
    log::error("{}: the limits of the cgroups that were being killed are not known",
               lifted.error().what);
    lifted.emplace();
  }
  auto former = memory_high_file_.load();
  if (!former) {
    log::error("{}: what memory.high was before is not known", former.error().what);
    former.emplace();
  }
  if (lifted->empty() && former->empty()) return;
  if (!lifted->empty()) log::info("restoring the limits of {} killed cgroups", lifted->size());
  if (!former->empty()) log::info("putting back the memory.high of {} cgroups", former->size());
  restore_thread_ = std::jthread([limits = lifted_limits_, overrides = memory_high_overrides_,
                                  lifted = std::move(*lifted), found = std::move(*former)] {
    limits->restore_all(lifted);
    overrides->restore_all(found);
  });
}

void App::resume() {
  auto victims = victims_file_.load();
  if (!victims) {
    log::error("{}", victims.error().what);
    return;
  }
  for (const Victim& victim : *victims)
    log::info("resuming the eviction of {}/{}", victim.pod->pod_namespace, victim.pod->name);
  engine_.resume(std::move(*victims));
}

void App::resume_timers() {
  auto timers = taint_timer_file_.load();
  if (timers)
    engine_.resume(std::move(*timers));
  else
    log::error("{}: pods have their tolerationSeconds anew", timers.error().what);
}

Actuator& App::actuator() {
  if (config_.policy.mode == Mode::kEnforce) return exit_tracking_actuator_;
  return dry_actuator_;
}

void App::publish_source() {
  self_checked_at_ = observe::now();
  reporter_.set_sources(source_->group_sources());
}

bool App::is_dying(CgroupId id) const {
  const auto& victims = engine_.history().victims;
  return std::any_of(victims.begin(), victims.end(), [&](const Victim& victim) {
    const CgroupId is_victim = victim.part.whole() ? victim.cgroup : victim.part.cgroup;
    return is_victim == id && victim.part.unit != EvictionUnit::kProcess &&
           (victim.phase == Victim::Phase::kTerminating || victim.phase == Victim::Phase::kKilled);
  });
}

std::optional<Instant> App::read_events() {
  lifecycle_->drain();
  const auto due = events_.due();
  if (due) engine_.request_sweep_by(*due);
  return due;
}

void App::report_oom_kill(const hr_event& event) {
  const CgroupId cgroup{event.cgroup};
  report::KernelOomKill kill{.cgroup = cgroup,
                             .path = std::string(names_.path_of(cgroup)),
                             .pod = observer_.pod_of(cgroup),
                             .pid = event.pid,
                             .comm = name_of(event),
                             .limit_of = std::nullopt,
                             .limit_path = {},
                             .limit_of_pods = false,
                             .would_evict = failsafe_list_.first()};
  if (event.other) {
    kill.limit_of = CgroupId{event.other};
    kill.limit_path = names_.path_of(*kill.limit_of);
    kill.limit_of_pods = contains_pods_cgroup(kill.limit_path, config_.pods_cgroup);
  }
  reporter_.record_kernel_oom(kill);
}

report::Programs App::programs() const {
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

// Whoever is gone, or given up, exits unwatched.
void App::forget_exits() {
  if (!lifecycle_) return;
  for (const EvictionEnd& eviction_end : engine_.verdict().eviction_ends)
    lifecycle_->forget_exits(eviction_end.part.whole() ? eviction_end.cgroup
                                                       : eviction_end.part.cgroup);
}

Instant App::turn(report::WakeSource wake) {
  Instant next = engine_.turn(observe::now(), wake);
  const auto left = judge_eviction::memory_left(config_.policy, engine_.verdict());
  if (guard_control_.set(observe::now(), config_.policy, left)) next = engine_.next_guarded();
  failsafe_list_.beat(next);
  forget_exits();
  // After the acts: a disk that hangs costs the next turn, not this kill.
  save_state();
  log_new_error();
  run_self_check(next);
  return next;
}

// A pass that fails at every turn is said once, and once more when it works again.
void App::log_new_error() {
  if (observer_.trouble() == logged_error_) return;
  logged_error_ = observer_.trouble();
  if (logged_error_.empty())
    log::info("the cgroups are read again");
  else
    log::error("{}: nothing is known of the cgroups until the next pass", logged_error_);
}

// Now and then, when nothing is near: it takes some milliseconds.
void App::run_self_check(Instant next_turn) {
  const Instant at = observe::now();
  const bool is_idle =
      engine_.history().victims.empty() && next_turn - at > config_.policy.check_ceiling / 2;
  if (!is_idle || at - self_checked_at_ < config_.self_check_period) return;
  if (source_->recheck()) log_source(*source_);
  publish_source();
}

void App::save_state() {
  const auto victims = victims_file_.save(engine_.history().victims);
  const auto timers = taint_timer_file_.save(engine_.history().taint_timers);
  const bool unsaved = !victims || !timers;
  if (unsaved && !state_unsaved_)
    log::error("{}: a restart would not resume an eviction under way, or give time anew",
               victims ? timers.error().what : victims.error().what);
  state_unsaved_ = unsaved;
}

void App::apply_taint_edits() {
  taints_.clear_edited();
  config_.policy.taints = taints_.shared_taints();
  std::string list;
  for (const auto& taint : config_.policy.taints)
    list.append(list.empty() ? "" : ", ").append(to_string(*taint));
  log::info("the node's taints are now: {}", list.empty() ? "none" : list);
  propagate_policy();
}

// Everybody who keeps one of his own.
void App::propagate_policy() {
  engine_.reconfigure(config_.policy);
  engine_.use(actuator());
  reporter_.reconfigure(config_.policy);
  failsafe_list_.reconfigure(config_.policy);
  observer_.apply_policy(config_.policy);
  // Who only observes holds nobody, and has no act to end it.
  if (config_.policy.mode != Mode::kEnforce && memory_high_overrides_->held() > 0)
    restore_thread_ = std::jthread([limits = lifted_limits_, overrides = memory_high_overrides_] {
      limits->restore_all();
      overrides->restore_all();
    });
  shadow_reporter_.reconfigure(config_.policy);
  recorder_.reconfigure(config_.policy);
  node_status_.reconfigure(node_options_of(config_), config_.policy);
}

// Two daemons that evict would each kill for the same shortage. Without the lock the mode stays
// observe, and the rest of the configuration is adopted.
void App::take_or_release_lock(config::Config& fresh) {
  if (fresh.policy.mode != Mode::kEnforce || lock_) return;
  if (auto taken = EnforceLock::take(root_.mount)) {
    lock_.emplace(std::move(*taken));
    return;
  } else {
    log::error("{}; headroom.mode stays observe", taken.error().what);
  }
  fresh.policy.mode = Mode::kObserve;
  for (config::ConfigSetting& setting : fresh.settings)
    if (setting.path == "headroom.mode") {
      setting.value = R"("observe")";
      setting.origin = "found";
    }
}

void App::reconfigure(config::Config config) {
  take_or_release_lock(config);
  config = with_current_taints(complete_config(std::move(config), measured_fill_, filesystems_));
  config_.settings = config::keep_restart_settings(std::move(config.settings), config_.settings);
  for (const config::ConfigSetting& setting : config_.settings)
    if (!setting.next.empty())
      log::warning("{}: {} takes effect at the next start", setting.path, setting.next_origin);
  active_settings_.set(config_.settings);
  config_.reclaim = std::move(config.reclaim);
  config_.cpus = std::move(config.cpus);
  host_actuator_.use(actuator_options_of(config_));
  if (config.policy.pressure_window != config_.policy.pressure_window)
    observer_.set_pressure_window(config.policy.pressure_window);
  config_.policy = std::move(config.policy);
  config_.self_check_period = config.self_check_period;
  engine_.set_cpu_budget(config.cpu_budget);
  config_.pod_manifests = std::move(config.pod_manifests);
  config_.kubernetes = std::move(config.kubernetes);
  config_.kubelet_present = config.kubelet_present;
  config_.taints = std::move(config.taints);
  // Where the pods' cgroup is, the sources go by as well: both change at the next start.
  config.reserved.driver = config_.reserved.driver;
  config.reserved.kubepods = config_.reserved.kubepods;
  config_.reserved = std::move(config.reserved);
  config_.slices = config.slices;
  if (auto result = start_slice_worker(); !result) log::error("{}", result.error().what);
  config_.max_pods = config.max_pods;
  config_.pods_per_core = config.pods_per_core;
  config_.node_name = std::move(config.node_name);
  config_.node_labels = std::move(config.node_labels);
  log::set_level(config.log_level);
  config_.mirror_oom_scores = config.mirror_oom_scores;
  propagate_policy();
  update_cpus();
  update_oom_score_worker();
  if (config_.policy.mode != Mode::kEnforce) lock_.reset();
}

}  // namespace headroom::daemon
