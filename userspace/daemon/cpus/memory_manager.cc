// SPDX-License-Identifier: Apache-2.0
#include "daemon/cpus/memory_manager.h"

#include "base/log/journal.h"
#include "judge/memory/memory_state.h"
#include "observe/node/capacity.h"
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <utility>

namespace headroom::daemon {
namespace {

// Calls of setup_.pause: systemd answers before it writes.
constexpr int kMaxPauses = 100;

std::string list_of(NodeSet nodes) {
  return nodes.empty() ? "all nodes" : format_nodes(nodes);
}

}  // namespace

// On Linux 6.12 and older all nodes are what is left where a limit was removed from a cgroup with
// processes (CpusetWriter).
bool MemsUpdater::is_met(NodeSet own, NodeSet wanted) const {
  if (own == wanted) return true;
  return wanted.empty() && own == observe::nodes_of_cgroup(setup_.cgroup_root, "");
}

// A removed cgroup counts as correct, also if another one has its path.
bool MemsUpdater::has(const std::string& path, const Target& target) const {
  const SeenCgroup cgroup{.path = path, .id = target.cgroup};
  const auto own = observe::own_nodes_of_cgroup(setup_.cgroup_root, cgroup);
  return !own || is_met(*own, target.nodes);
}

void MemsUpdater::write(const std::string& path, const Target& target) {
  ++counters_.writes;
  auto done = target.nodes.empty() ? Result<>() : setup_.prepare({path});
  if (done) done = setup_.write({.path = path, .id = target.cgroup}, target.nodes);
  for (int i = 0; done && i < kMaxPauses && !has(path, target); ++i)
    setup_.pause();
  if (has(path, target)) return;
  ++counters_.failed;
  if (done)
    log::error("{}: it was given the NUMA nodes {} and does not have them", path,
               list_of(target.nodes));
  else
    log::error("{}: {}", path, done.error().what);
}

void MemsUpdater::apply(Wanted wanted) {
  for (const auto& [path, target] : applied_)
    wanted.try_emplace(path, Target{.cgroup = target.cgroup, .nodes = {}});
  Wanted applied;
  for (const auto& [path, target] : wanted) {
    const SeenCgroup cgroup{.path = path, .id = target.cgroup};
    const auto own = observe::own_nodes_of_cgroup(setup_.cgroup_root, cgroup);
    if (!own) continue;
    const auto before = applied_.find(path);
    if (!is_met(*own, target.nodes)) {
      if (before != applied_.end() && before->second == target) {
        ++counters_.repaired;
        log::warning("{}: its cpuset.mems was changed to {} by another program; restoring {}", path,
                     list_of(*own), list_of(target.nodes));
      }
      write(path, target);
    }
    if (!target.nodes.empty() && has(path, target)) applied.emplace(path, target);
  }
  applied_ = std::move(applied);
}

bool MemsUpdater::drifted() const {
  return std::ranges::any_of(applied_, [&](const auto& one) {
    const auto own = observe::own_nodes_of_cgroup(setup_.cgroup_root, one.first);
    return own && *own != one.second.nodes;
  });
}

namespace {

using Policy = config::CpusConfig::MemoryManagerPolicy;

// The nodes of all containers of the pod. Empty: one of them has no assigned memory.
NodeSet nodes_of_pod(const MemoryPolicy& policy, const MemoryState& state, const Pod& pod) {
  NodeSet nodes;
  if (!policy.is_served(state, pod)) return nodes;
  bool all = true;
  const bool pool = state.pod_entries.contains(pod.uid);
  for_each_container(pod, [&](const Container& container) {
    nodes = nodes | memory_nodes(state, pod.uid, container.name);
    all = all && (pool || requests_memory(pod, container));
  });
  return all ? nodes : NodeSet{};
}

PodLevelMode pod_level_mode(const config::CpusConfig& config) {
  return topology_rules(config).pod_level_mode();
}

std::string label_of(const Pod& pod) {
  return pod.pod_namespace.empty() ? pod.name : pod.pod_namespace + "/" + pod.name;
}

}  // namespace

MemoryManager::MemoryManager(MemsUpdater::Setup setup, std::filesystem::path sys,
                             const config::CpusConfig& config, AtStep at_step)
    : cgroup_root_(setup.cgroup_root),
      sys_(std::move(sys)),
      at_step_(std::move(at_step)),
      config_(config),
      file_(config.memory_state_file, at_step_),
      mems_(std::move(setup)) {}

void MemoryManager::reconfigure(const config::CpusConfig& config) {
  if (config.mode == config::CpusConfig::Mode::kEnforce) file_is_read_ = false;
  if (config.memory_state_file != config_.memory_state_file)
    file_ = act::MemoryStateFile(config.memory_state_file, at_step_);
  if (config.reserved_memory != config_.reserved_memory ||
      pod_level_mode(config) != pod_level_mode(config_))
    sizes_.clear();
  config_ = config;
}

// Re-read each time: huge pages can be reserved at any time, and memory can be hot-plugged.
Result<> MemoryManager::refresh() {
  if (config_.memory_policy == Policy::kNone) {
    if (policy_) {
      released_ = state_.entries;
      was_static_ = true;
    }
    policy_.reset();
    state_ = {};
    sizes_.clear();
    return {};
  }
  auto sizes = observe::read_numa_memory(sys_);
  if (!sizes) return tl::make_unexpected(sizes.error());
  if (policy_ && *sizes == sizes_) return {};
  sizes_ = std::move(*sizes);
  policy_.emplace(sizes_, config_.reserved_memory, pod_level_mode(config_));
  return {};
}

void MemoryManager::load(bool enforces) {
  auto loaded = file_.load();
  file_is_read_ = !enforces && loaded && *loaded && (*loaded)->policy == name(Policy::kStatic);
  const std::string error = loaded ? "" : loaded.error().what;
  if (!error.empty() && error != load_error_) {
    log::error("{}: the assignment of memory is taken from the cgroups", error);
    if (enforces)
      if (const auto moved = file_.move_damaged_file(); !moved)
        log::error("{}", moved.error().what);
  }
  load_error_ = error;
  if (!loaded || !*loaded) return;
  if (policy_ && enforces)
    if (const auto fault = policy_->find_fault((*loaded)->state))
      log::warning("{}: {}: every assignment that still fits is kept", file_.path().native(),
                   *fault);
  act::MemoryCheckpoint& checkpoint = **loaded;
  if (policy_) {
    state_.entries = std::move(checkpoint.state.entries);
    state_.pod_entries = std::move(checkpoint.state.pod_entries);
  } else if (checkpoint.policy == name(Policy::kStatic)) {
    released_ = std::move(checkpoint.state.entries);
    was_static_ = true;
  }
}

const MemoryPolicy* MemoryManager::assigning_policy() const {
  return policy_ && !file_is_read_ ? &*policy_ : nullptr;
}

// The containers that are limited to some of the nodes, to replace a lost file.
std::vector<RunningMemory> MemoryManager::running(const PresentPods& pods) const {
  std::vector<RunningMemory> running;
  for (const PresentPod& present : pods.all()) {
    if (!present.cgroup.populated) continue;
    for (const auto& [name, path] : present.containers)
      if (const auto nodes = observe::own_nodes_of_cgroup(cgroup_root_, path);
          nodes && !nodes->empty())
        running.push_back({present.cgroup.uid, name, *nodes});
  }
  return running;
}

void MemoryManager::keep(const PresentPods& pods, std::span<const Pod* const> active, bool first) {
  if (!policy_) return;
  const bool guesses = first && !file_is_read_;
  MemoryState next =
      keep_memory(*policy_, state_, active, guesses ? running(pods) : std::vector<RunningMemory>{});
  // A pod's init containers have finished once one of its other containers runs.
  for (const PresentPod& present : pods.all()) {
    if (!present.pod) continue;
    const auto running = std::ranges::find_if(
        present.pod->containers,
        [&](const Container& container) { return present.containers.contains(container.name); });
    if (running != present.pod->containers.end())
      next = release_finished_init_memory(std::move(next), *present.pod, running->name);
  }
  state_ = std::move(next);
}

// One line for each container whose nodes changed.
void MemoryManager::log_changes(const MemoryState& next, const PresentPods& pods) {
  for (const PresentPod& present : pods.all()) {
    if (!present.pod) continue;
    for_each_container(*present.pod, [&](const Container& container) {
      const NodeSet was = memory_nodes(state_, present.pod->uid, container.name);
      const NodeSet is = memory_nodes(next, present.pod->uid, container.name);
      if (was == is || is.empty()) return;
      if (was.empty()) ++counts_.pinning_requests;
      log::info("memory of NUMA nodes {} is for {} {}", format_nodes(is), label_of(*present.pod),
                container.name);
    });
  }
}

void MemoryManager::count_refusals(const PresentPods& pods, std::span<const PodRefusal> refused) {
  std::map<std::string, std::string, std::less<>> now;
  for (const PodRefusal& one : refused) {
    if (!assigning_policy() || policy_->is_served(state_, *one.pod)) continue;
    const std::string why = reason_and_message(one.why.refusal);
    now.emplace(one.pod->uid, why);
    if (refused_.contains(one.pod->uid) || !pods.is_present(one.pod->uid)) continue;
    std::uint64_t count = 0;
    for_each_container(*one.pod, [&](const Container& container) {
      count += requests_memory(*one.pod, container) ? 1 : 0;
    });
    counts_.pinning_requests += count;
    counts_.pinning_errors += count;
    log::warning("{} gets no memory of its own ({}): it uses any NUMA node", label_of(*one.pod),
                 why);
  }
  refused_ = std::move(now);
}

void MemoryManager::set_state(MemoryState next, const PresentPods& pods,
                              std::span<const PodRefusal> refused) {
  log_changes(next, pods);
  state_ = std::move(next);
  count_refusals(pods, refused);
}

void MemoryManager::save() {
  if (policy_) save_state();
}

void MemoryManager::save_state() {
  const auto saved = file_.save(std::string(name(config_.memory_policy)), state_);
  if (!saved && !counts_.unsaved)
    log::error("{}: after a restart, the assignment of memory is taken from the cgroups",
               saved.error().what);
  counts_.unsaved = !saved;
}

void MemoryManager::apply(const PresentPods& pods) {
  MemsUpdater::Wanted wanted;
  const auto set = [&](const std::string& path, NodeSet nodes) {
    wanted[path] = {.cgroup = pods.tree().cgroup(path).id, .nodes = nodes};
  };
  for (const PresentPod& present : pods.all()) {
    if (!present.pod && !present.cgroup.populated) continue;
    const std::string& uid = present.cgroup.uid;
    const auto old = released_.find(uid);
    // Settings of an earlier daemon are removed.
    if (old != released_.end()) set(present.cgroup.path, {});
    if (present.pod)
      if (const NodeSet nodes = policy_ ? nodes_of_pod(*policy_, state_, *present.pod) : NodeSet{};
          !nodes.empty())
        set(present.cgroup.path, nodes);
    for (const auto& [name, path] : present.containers) {
      if (old != released_.end() && old->second.contains(name)) set(path, {});
      if (const NodeSet nodes = memory_nodes(state_, uid, name); !nodes.empty()) set(path, nodes);
    }
  }
  const std::uint64_t failed = mems_.counters().failed;
  mems_.apply(std::move(wanted));
  // What could not be released stays in the file, and the next pass tries again.
  if (mems_.counters().failed == failed) end_release();
}

void MemoryManager::end_release() {
  released_.clear();
  if (std::exchange(was_static_, false) && !policy_) save_state();
}

std::optional<report::MemoryView> MemoryManager::view(const PresentPods& pods,
                                                      std::string_view mode) const {
  if (!policy_) return std::nullopt;
  report::MemoryView view = counts_;
  view.mode = mode;
  view.policy = name(config_.memory_policy);
  view.writes = mems_.counters().writes;
  view.failed = mems_.counters().failed;
  view.repaired = mems_.counters().repaired;
  view.nodes = state_.machine;
  for (const PresentPod& present : pods.all()) {
    if (!present.pod || !gets_own_memory(*present.pod, policy_->pod_level_mode())) continue;
    const bool pool = has_pod_pool(*present.pod, policy_->pod_level_mode());
    for_each_container(*present.pod, [&](const Container& container) {
      if (!pool && !requests_memory(*present.pod, container)) return;
      report::ContainerMemoryView one{.pod_namespace = present.pod->pod_namespace,
                                      .pod = present.pod->name,
                                      .uid = present.pod->uid,
                                      .container = container.name};
      if (const MemoryBlocks* const blocks = memory_blocks(state_, one.uid, one.container))
        one.blocks = *blocks;
      if (const auto why = refused_.find(one.uid); why != refused_.end()) one.refusal = why->second;
      const auto [first, last] = present.containers.equal_range(container.name);
      for (auto at = first; at != last; ++at)
        if (const auto nodes = observe::nodes_of_cgroup(cgroup_root_, at->second))
          one.runs_on = one.runs_on | *nodes;
      view.containers.push_back(std::move(one));
    });
  }
  return view;
}

}  // namespace headroom::daemon
