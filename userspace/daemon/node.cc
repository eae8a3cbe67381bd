// SPDX-License-Identifier: Apache-2.0
#include "daemon/node.h"

#include "daemon/allocations.h"
#include "daemon/site.h"
#include "judge/qos.h"
#include "observe/clock.h"
#include "observe/fill_rate.h"
#include "report/journal.h"

#include <algorithm>
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

// What the operator says of the machine is taken as said; else the watch outruns what was measured.
config::Config outrunning(config::Config config, std::int64_t measured_fill) {
  if (!config.fastest_fill_told)
    config.policy.fastest_fill = std::max(config.policy.fastest_fill, measured_fill);
  return config;
}

void say_source(const observe::BestSource& source) {
  const std::string reasons = fmt::format("{}", fmt::join(source.reasons(), "; "));
  if (source.bpf())
    log::info("cgroups are read through {} ({})", source.name(), reasons);
  else
    log::warning(
        "no BPF ({}): cgroups are read from files, for the same decisions at more CPU time",
        reasons);
}

}  // namespace

Result<Node::Sources> Node::open_sources(const observe::CgroupRoot& root) {
  observe::BestSource::Options options;
  options.root = root.mount;
  options.log = [](std::string_view line) { log::debug("libbpf: {}", line); };
  auto source = observe::BestSource::open(options);
  if (!source) return tl::make_unexpected(source.error());
  auto inventory = observe::Inventory::open(root.mount);
  if (!inventory) return tl::make_unexpected(inventory.error());
  say_source(**source);
  return Sources{std::move(*source), std::move(*inventory)};
}

Result<std::unique_ptr<Node>> Node::start(config::Config config, observe::CgroupRoot root,
                                          std::vector<Pod> manifests) {
  auto sources = open_sources(root);
  if (!sources) return tl::make_unexpected(sources.error());
  make_directory(config.state_dir);
  std::unique_ptr<Node> node(
      new Node(std::move(config), root, std::move(*sources), std::move(manifests)));
  node->open_windows();
  node->resume();
  return node;
}

Node::Node(config::Config config, const observe::CgroupRoot& root, Sources sources,
           std::vector<Pod> manifests)
    : measured_fill_(observe::measure_fastest_fill()),
      config_(outrunning(std::move(config), measured_fill_)),
      source_(sources.source.get()),
      observer_({.node = observe::NodeSource({.cgroup_root = root.mount}),
                 .cgroups = std::move(sources.source),
                 .inventory = std::move(sources.inventory),
                 .pods_cgroup = config_.pods_cgroup}),
      names_(observer_.inventory()),
      shown_(std::make_shared<report::Shown>()),
      reporter_(reporter_setup()),
      host_actuator_(
          [this](CgroupId id) {
            const observe::KnownCgroup* known = observer_.inventory().find(id);
            return known ? known->directory.get() : -1;
          },
          &observe::now),
      dry_actuator_(&observe::now),
      victims_file_(config_.state_dir),
      engine_(config_.policy, observer_, actuator(), reporter_,
              TurnMeter(&observe::now, &allocations_on_this_thread),
              [this](const report::TickCost& cost) {
                reporter_.note(cost);
                reporter_.note_missing_readings(observer_.missing_readings());
                reporter_.note_losses({.cgroups = source_->lost(),
                                       .unresolved = observer_.inventory().unresolved(),
                                       .notices = bus_ ? bus_->lost() : 0});
              }) {
  observer_.describe(std::move(manifests));
  note_source();
}

report::ReporterSetup Node::reporter_setup() {
  return {.shown = shown_,
          .policy = config_.policy,
          .audit_log = config_.audit_log,
          .names = &names_,
          .qos_of = &qos_class,
          .on_evicted = [this](const report::Eviction& eviction) {
            if (bus_) bus_->evicted(eviction);
          }};
}

// The windows others look through. Without one of them the node is kept all the same.
void Node::open_windows() {
  auto bus = report::BusThread::start({.shown = shown_, .qos_of = &qos_class});
  if (bus)
    bus_ = std::move(*bus);
  else
    log::warning("D-Bus: {}; headroomctl cannot reach this daemon", bus.error().what);
  if (config_.listen.empty()) return;
  auto http = report::Http::open(config_.listen, make_site(config_, shown_));
  if (http)
    http_ = std::move(*http);
  else
    log::error("{}; metrics are not served", http.error().what);
}

void Node::resume() {
  auto victims = victims_file_.load();
  if (!victims) {
    log::error("{}", victims.error().what);
    return;
  }
  for (const Victim& victim : *victims)
    log::info("resuming the eviction of {}/{}", victim.pod->pod_namespace, victim.pod->name);
  engine_.resume(std::move(*victims));
}

Actuator& Node::actuator() {
  if (config_.policy.mode == Mode::kEnforce) return host_actuator_;
  return dry_actuator_;
}

void Node::note_source() {
  checked_at_ = observe::now();
  reporter_.note_sources(source_->provenance());
}

Instant Node::turn(report::Wake wake) {
  const Instant next = engine_.turn(observe::now(), wake);
  // After the acts: a disk that hangs costs the next turn, not this kill.
  const auto saved = victims_file_.save(engine_.history().victims);
  if (!saved && !victims_unsaved_)
    log::error("{}: a restart would not resume an eviction under way", saved.error().what);
  victims_unsaved_ = !saved;
  say_trouble();
  check_itself(next);
  return next;
}

// A pass that fails at every turn is said once, and once more when it works again.
void Node::say_trouble() {
  if (observer_.trouble() == trouble_) return;
  trouble_ = observer_.trouble();
  if (trouble_.empty())
    log::info("the cgroups are read again");
  else
    log::error("{}: nothing is known of the cgroups until the next pass", trouble_);
}

// Now and then, when nothing is near: it takes some milliseconds.
void Node::check_itself(Instant next_turn) {
  const Instant at = observe::now();
  const bool calm =
      engine_.history().victims.empty() && next_turn - at > config_.policy.check_ceiling / 2;
  if (!calm || at - checked_at_ < config_.self_check_period) return;
  if (source_->recheck()) say_source(*source_);
  note_source();
}

void Node::adopt(config::Config config) {
  config = outrunning(std::move(config), measured_fill_);
  const auto stays = [&](const char* key, const auto& was, const auto& wanted) {
    if (was != wanted) log::warning("headroom.{} takes effect at the next start", key);
  };
  stays("listen", config_.listen, config.listen);
  stays("auditLog", config_.audit_log, config.audit_log);
  stays("stateDirectory", config_.state_dir, config.state_dir);
  stays("podsCgroup", config_.pods_cgroup, config.pods_cgroup);
  stays("compatibilityMetrics", config_.compatibility_metrics, config.compatibility_metrics);
  config_.policy = std::move(config.policy);
  config_.self_check_period = config.self_check_period;
  config_.pod_manifests = std::move(config.pod_manifests);
  log::set_level(config.log_level);
  engine_.adopt(config_.policy);
  engine_.use(actuator());
  reporter_.adopt(config_.policy);
}

}  // namespace headroom::daemon
