// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/cpu_manager.h"

#include "base/log/journal.h"
#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/policy/static_policy.h"
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

namespace headroom::daemon {
namespace {

using Policy = config::CpusConfig::Policy;

DeviceNodes device_nodes(const std::filesystem::path& sys) {
  DeviceNodes nodes;
  for (const observe::PciDevice& device : observe::read_pci_devices(sys))
    if (device.numa) nodes.emplace(device.address, *device.numa);
  return nodes;
}

StaticPolicyConfig static_config(const CpuManagerOptions& options, Topology topology) {
  const config::CpusConfig& cpus = options.cpus;
  CpuReservation reservation = reservation_of(options.reserved);
  reservation.cpus = cpus.reserved;
  return {.topology = std::move(topology),
          .options = cpus.options,
          .reservation = std::move(reservation),
          .topology_rules = topology_rules(cpus),
          .devices = {}};
}

// The topology without isolated CPUs.
Result<Topology> managed_topology(const observe::MachineCpus& machine, bool exclude_isolated) {
  if (!exclude_isolated || machine.isolated.empty()) return machine.topology;
  std::vector<CpuLocation> rows;
  for (const CpuLocation& place : machine.topology.places())
    if (!machine.isolated.contains(place.cpu)) rows.push_back(place);
  if (rows.empty()) return failure("all CPUs are isolated, and excludeIsolated leaves none");
  return Topology::of(std::move(rows), machine.topology.numa().distances);
}

std::uint64_t exclusive_container_count(const Pod& pod, PodLevelMode mode) {
  std::uint64_t count = 0;
  for_each_container(pod, [&](const Container& container) {
    count += exclusive_cpus_requested(pod, container, mode) > 0 ? 1 : 0;
  });
  return count;
}

std::string label(const Pod& pod) {
  return pod.pod_namespace.empty() ? pod.name : pod.pod_namespace + "/" + pod.name;
}

}  // namespace

PolicyErrors machine_config_errors(const CpuManagerOptions& options, const Topology& topology) {
  const auto policy = StaticPolicy::of(static_config(options, topology));
  return policy ? PolicyErrors{} : policy.error();
}

CpuManager::CpuManager(Setup setup, CpuManagerOptions options)
    : setup_(std::move(setup)),
      options_(std::move(options)),
      pods_(setup_.cpusets.cgroup_root, setup_.pods_cgroup, setup_.identify),
      memory_({.cgroup_root = setup_.cpusets.cgroup_root,
               .write = setup_.write_nodes,
               .prepare = [this](const auto& paths) { return units_.add(paths); },
               .pause = setup_.cpusets.pause},
              setup_.sys, options_.cpus, setup_.at_step),
      file_(options_.cpus.state_file, setup_.at_step),
      units_(act::cpuset_units_file(setup_.state_dir)),
      cpusets_({.cgroup_root = setup_.cpusets.cgroup_root,
                .write = setup_.cpusets.write,
                .prepare = [this](const auto& paths) { return units_.add(paths); },
                .pause = setup_.cpusets.pause}),
      partitions_(setup_.cpusets.cgroup_root) {}

// In another mode than enforce nothing is written any more: what was assigned is released before.
void CpuManager::reconfigure(CpuManagerOptions options) {
  if (enforces() && options.cpus.mode != config::CpusConfig::Mode::kEnforce) release_all();
  if (options.cpus.state_file != options_.cpus.state_file)
    file_ = act::CpuStateFile(options.cpus.state_file, setup_.at_step);
  memory_.reconfigure(options.cpus);
  options_ = std::move(options);
  options_changed_ = true;
  partitions_.forget_failures();
}

void CpuManager::release_all() {
  options_.cpus.policy = Policy::kNone;
  options_.cpus.memory_policy = config::CpusConfig::MemoryManagerPolicy::kNone;
  memory_.reconfigure(options_.cpus);
  options_changed_ = true;
  reconcile();
}

void CpuManager::log_new_error(std::string error) {
  if (error == error_) return;
  error_ = std::move(error);
  if (error_.empty())
    log::info("CPU pinning works again");
  else
    log::error("CPU pinning: {}; pinned containers stay pinned", error_);
}

// --- the machine ---------------------------------------------------------------------

// The topology is read only if the set of online CPUs has changed.
Result<> CpuManager::refresh_machine() {
  const auto online = observe::read_online_cpus(setup_.sys);
  if (!online) return tl::make_unexpected(online.error());
  if (machine_ && machine_->topology.cpus() == *online) return {};
  auto machine = observe::read_topology(setup_.sys);
  if (!machine) return tl::make_unexpected(machine.error());
  if (machine_)
    log::warning("the CPUs online are now {}, were {}", machine->topology.cpus().format(),
                 machine_->topology.cpus().format());
  machine_ = std::move(*machine);
  options_changed_ = true;
  return {};
}

Result<> CpuManager::refresh_policy() {
  if (!options_changed_) return {};
  if (options_.cpus.policy == Policy::kNone) {
    was_static_ = was_static_ || policy_;
    policy_.reset();
    options_changed_ = false;
    return {};
  }
  auto topology = managed_topology(*machine_, options_.cpus.exclude_isolated);
  if (!topology) return tl::make_unexpected(topology.error());
  StaticPolicyConfig config = static_config(options_, std::move(*topology));
  config.devices = device_nodes(setup_.sys);
  // CPUs that are reserved by the configuration but offline now are left out.
  if (config.reservation.cpus) *config.reservation.cpus &= config.topology.cpus();
  auto policy = StaticPolicy::of(std::move(config));
  if (!policy) {
    std::string all;
    for (const std::string& policy_error : policy.error())
      all.append(all.empty() ? "" : "; ").append(policy_error);
    return failure(all);
  }
  policy_ = std::move(*policy);
  options_changed_ = false;
  return {};
}

// --- the active pods --------------------------------------------------------------------------

// The oldest files use container ids, which are the names of the containers' cgroups.
act::CpuCheckpoint CpuManager::migrate_v1(act::CpuCheckpoint checkpoint) const {
  if (checkpoint.by_container_id.empty()) return checkpoint;
  act::ContainerRefs refs;
  for (const observe::PodCgroup& cgroup : tree().pods) {
    const auto names = pods_.names_by_path(cgroup);
    for (const observe::ContainerCgroup& each : cgroup.containers)
      if (const auto name = names.find(each.path); name != names.end())
        refs[each.name] = {cgroup.uid, name->second};
  }
  act::MigratedCheckpoint migrated = act::migrate_checkpoint(std::move(checkpoint), refs);
  for (const std::string& id : migrated.unknown)
    log::warning("{}: container {} is not here any more", file_.path().native(), id);
  return std::move(migrated.checkpoint);
}

void CpuManager::load() {
  loaded_ = true;
  // Of a daemon that was killed before it saved what it had released.
  if (enforces()) was_static_ = !units_.paths().empty();
  auto loaded = file_.load();
  if (!loaded) {
    log::error("{}: the assignment of CPUs is taken from the cgroups", loaded.error().what);
    if (!enforces()) return;
    if (const auto moved = file_.move_damaged_file(); !moved) log::error("{}", moved.error().what);
    return;
  }
  if (!*loaded) return;
  act::CpuCheckpoint checkpoint = migrate_v1(std::move(**loaded));
  was_static_ = was_static_ || checkpoint.policy == name(Policy::kStatic);
  if (checkpoint.policy != name(options_.cpus.policy))
    log::warning("{}: of the policy {}, taken over for {}", file_.path().native(),
                 checkpoint.policy, name(options_.cpus.policy));
  state_ = std::move(checkpoint.state);
}

SharedPoolOptions CpuManager::pool_options() const {
  return {.requested = pods_.shared_pool_requests(), .guarded = options_.cpus.guard_shared_pool};
}

// To replace a lost file: the CPUs of every Guaranteed pod, and the CPUs of all others, which are
// shared.
std::vector<RunningCpus> CpuManager::running() const {
  std::vector<RunningCpus> running;
  for (const std::string& path : tree().sharing)
    if (auto cpus = cpus_of(path)) running.push_back({path, "", std::move(*cpus)});
  for (const PresentPod& present : pods_.all()) {
    if (!present.cgroup.populated) continue;
    for (const auto& [name, path] : present.containers)
      if (auto cpus = cpus_of(path))
        running.push_back({present.cgroup.uid, name, std::move(*cpus)});
    const bool pool = present.pod && has_pod_pool(*present.pod, pod_level_mode());
    if (present.containers.empty() || pool)
      if (auto cpus = cpus_of(present.cgroup.path))
        running.push_back({present.cgroup.uid, "", std::move(*cpus)});
  }
  return running;
}

// Unknown devices in a pod's request are logged when the pod appears.
void CpuManager::warn_unknown_devices(const std::string& uid) const {
  const auto& pod = pods_.manifest(uid);
  if (!policy_ || !pod) return;
  for (const std::string& device : requested_devices(*pod))
    if (!policy_->config().devices.contains(device))
      log::warning("{}: {}: no PCI device {} with a known NUMA node", label(*pod),
                   kNearDevicesAnnotation, device);
}

// --- the assignment ---------------------------------------------------------------------------

void CpuManager::reconcile() {
  pods_.read_tree();
  if (auto ready = refresh_machine(); !ready) return log_new_error(ready.error().what);
  if (auto ready = refresh_policy(); !ready) return log_new_error(ready.error().what);
  if (auto ready = memory_.refresh(); !ready) return log_new_error(ready.error().what);
  log_new_error("");
  const bool first = !loaded_;
  if (first) load();
  if (first || !enforces()) memory_.load(enforces());
  for (const std::string& uid :
       pods_.update({state_, memory_.entries(), memory_.pools()}, pod_level_mode()))
    warn_unknown_devices(uid);
  assign_all(first);
  if (!enforces()) return;
  // What is assigned is in the files before it is in the cgroups; what is released stays in the
  // files until no cgroup has it.
  if (policy_) save();
  memory_.save();
  if (policy_) apply();
  if (!policy_ && (!was_static_ || release())) save();
  memory_.apply(pods_);
  cpusets_.forget_removed();
  forget_removed();
}

// Whether neither CPUs nor memory are assigned, and nothing is left of what was.
bool CpuManager::is_released() const {
  return !policy_ && !memory_.is_static() && !was_static_ && !memory_.is_releasing();
}

// A pod that has a manifest may be started again: it then has its CPUs from the beginning.
void CpuManager::forget_removed() {
  const observe::PodCgroupParser layout(setup_.pods_cgroup);
  const bool assigns = policy_ || memory_.is_static();
  const auto may_come_back = [&](const std::string& path) {
    const auto place = layout.place(path);
    return assigns && place && pods_.manifest(place->uid);
  };
  std::vector<std::string> forgotten;
  for (const std::string& path : units_.paths()) {
    const bool exists = cgroup_id_at(setup_.cpusets.cgroup_root.native() + path).has_value();
    const bool is_over = exists ? is_released() : !may_come_back(path);
    if (is_over && setup_.remove_settings(path)) forgotten.push_back(path);
  }
  units_.remove(forgotten);
}

void CpuManager::apply() {
  const CpuPartitions::Wanted partitions = desired_partitions();
  partitions_.end(tree(), partitions);
  // With the policy none no container has exclusive CPUs.
  cpusets_.apply(targets(), shared(), /*unlimited=*/!policy_);
  partitions_.start(tree(), partitions);
}

// With the policy none: removes the CPU sets of the static policy. False: some could not be
// written; the next pass tries again.
bool CpuManager::release() {
  const std::uint64_t failed = cpusets_.counters().failed;
  apply();
  was_static_ = cpusets_.counters().failed != failed;
  return !was_static_;
}

bool CpuManager::drifted() const {
  const auto online = observe::read_online_cpus(setup_.sys);
  if (online && machine_ && *online != machine_->topology.cpus()) return true;
  return enforces() && (partitions_.lost() || cpusets_.drifted() || memory_.drifted());
}

// CPUs and memory of a pod are assigned together or not at all.
void CpuManager::assign_all(bool first) {
  std::vector<const Pod*> active;
  for (const PresentPod& present : pods_.all())
    if (present.pod) active.push_back(present.pod.get());
  memory_.keep(pods_, active, first);
  const ResourceManagers managers{.cpus = policy_ ? &*policy_ : nullptr,
                                  .memory = memory_.assigning_policy(),
                                  .rules = topology_rules(options_.cpus),
                                  .numa = &machine_->topology.numa()};
  const std::vector<RunningCpus> runs = first ? running() : std::vector<RunningCpus>{};
  ResourceAssignment next =
      assign_resources(managers, {state_, memory_.state()}, active, runs, pool_options());
  if (!policy_) next.state.cpus = {.default_set = machine_->topology.cpus()};
  log_changes(next.state.cpus);
  update_refusals(next.refused);
  if (policy_)
    record_pool(next.pool);
  else
    pool_.reset();
  state_ = std::move(next.state.cpus);
  memory_.set_state(std::move(next.state.memory), pods_, next.refused);
}

// One line for each container whose CPUs changed.
void CpuManager::log_changes(const CpuState& next) {
  for (const PresentPod& present : pods_.all()) {
    if (!present.pod) continue;
    std::vector<CpuSet> assigned;
    const std::string& uid = present.pod->uid;
    const bool new_pool = next.pod_entries.contains(uid) && !state_.pod_entries.contains(uid);
    for_each_container(*present.pod, [&](const Container& container) {
      const CpuSet* const was = exclusive_cpus(state_, uid, container.name);
      const CpuSet* const is = exclusive_cpus(next, uid, container.name);
      if (is && was && *is == *was) return;
      const bool alone = cpu_isolation(next, *present.pod, container) == CpuIsolation::kContainer;
      if (is && !was && alone) assigned.push_back(*is);
      if (is)
        log::info("CPUs {} are for {} {} {}{}", is->format(), label(*present.pod), container.name,
                  alone ? "alone" : "and others of the pod",
                  was ? ", instead of " + was->format() : "");
      else if (was)
        log::info("CPUs {} of {} {} are shared again", was->format(), label(*present.pod),
                  container.name);
    });
    if (!assigned.empty() || new_pool) count_assigned(assigned);
  }
  for (const auto& [uid, containers] : state_.entries)
    if (!pods_.is_present(uid))
      for (const auto& [name, cpus] : containers)
        log::info("CPUs {} of pod {} {} are shared again: it is gone", cpus.format(), uid, name);
}

// The sets of one pod's containers that had none.
void CpuManager::count_assigned(const std::vector<CpuSet>& containers) {
  counts_.pinning_requests += containers.size();
  ++counts_.topology_requests;
  if (!policy_) return;
  const CpuPolicyOptions& options = policy_->config().options;
  report::AlignmentCounts& aligned = counts_.aligned;
  if (options_.cpus.topology_policy == TopologyPolicy::kSingleNumaNode)
    aligned.numa_node +=
        options_.cpus.topology_scope == TopologyScope::kPod ? 1 : containers.size();
  if (options.full_pcpus_only) aligned.physical_cpu += containers.size();
  if (options.prefer_align_by_uncore)
    aligned.uncore_cache +=
        static_cast<std::uint64_t>(std::ranges::count_if(containers, [&](const CpuSet& cpus) {
          return cpu_spread(policy_->topology(), cpus).caches == 1;
        }));
}

void CpuManager::count_refused(const CpuRefusal& refusal) {
  ++counts_.topology_requests;
  ++counts_.topology_errors;
  const bool by_topology = std::holds_alternative<TopologyAffinityError>(refusal);
  if (by_topology && options_.cpus.topology_policy == TopologyPolicy::kSingleNumaNode)
    ++counts_.aligned.numa_node_failed;
  if (!by_topology && policy_->config().options.full_pcpus_only)
    ++counts_.aligned.physical_cpu_failed;
}

void CpuManager::update_refusals(const std::vector<PodRefusal>& refused) {
  std::map<std::string, ContainerRefusal, std::less<>> now;
  for (const PodRefusal& one : refused) {
    now.emplace(one.pod->uid, one.why);
    const std::uint64_t count = exclusive_container_count(*one.pod, pod_level_mode());
    if (refused_.contains(one.pod->uid) || !policy_ || count == 0) continue;
    counts_.pinning_requests += count;
    counts_.pinning_errors += count;
    count_refused(one.why.refusal);
    counts_.pool_refusals += std::holds_alternative<SharedPoolError>(one.why.refusal) ? 1 : 0;
    log::warning("{} gets no exclusive CPUs ({}): it runs in the shared pool", label(*one.pod),
                 reason_and_message(one.why.refusal));
  }
  refused_ = std::move(now);
}

// If the pool is too small, no container can be refused: those with exclusive CPUs had them before
// the other pods came, or keep the ones that CPU hot-unplug left.
void CpuManager::record_pool(const SharedPool& pool) {
  const bool was_short = pool_ && pool_->is_short();
  pool_ = pool;
  if (pool.is_short() == was_short) return;
  const auto text = [](MilliCpu cpu) { return Quantity::of_milli(cpu.count).canonical(); };
  if (pool.is_short())
    log::warning("the shared pool has {} CPUs for pods that requested {}", text(pool.size),
                 text(pool.requested));
  else
    log::info("the shared pool has again what its pods requested: {} CPUs, {} requested",
              text(pool.size), text(pool.requested));
}

void CpuManager::save() {
  const auto saved = file_.save(std::string(name(options_.cpus.policy)), state_);
  if (!saved && !counts_.unsaved)
    log::error("{}: after a restart, the assignment of CPUs is taken from the cgroups",
               saved.error().what);
  counts_.unsaved = !saved;
}

CpuSet CpuManager::shared() const {
  return policy_ ? shared_pool(*policy_, state_) : machine_->topology.cpus();
}

}  // namespace headroom::daemon
