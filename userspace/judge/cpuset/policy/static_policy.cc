// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/policy/static_policy.h"

#include "judge/resources/pod_resources.h"

#include <headroom/quantity.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace headroom {
namespace {

struct ReasonOf {
  std::string_view operator()(const SmtAlignmentError&) const { return "SMTAlignmentError"; }
  std::string_view operator()(const TopologyAffinityError&) const {
    return "TopologyAffinityError";
  }
  std::string_view operator()(const NotEnoughCpus&) const { return "UnexpectedAdmissionError"; }
  std::string_view operator()(const SharedPoolError&) const { return "SharedPoolError"; }
  std::string_view operator()(const EmptyPodPool&) const { return "EmptyPodSharedPoolError"; }
  std::string_view operator()(MemoryRefusal) const { return "UnexpectedAdmissionError"; }
};

struct MessageOf {
  std::string operator()(const SmtAlignmentError& error) const {
    const std::string requested = std::to_string(error.requested);
    const std::string per_core = std::to_string(error.cpus_per_core);
    if (!error.available)
      return "SMT Alignment Error: requested " + requested +
             " cpus not multiple cpus per core = " + per_core;
    return "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
           std::to_string(*error.available) + ", requested CPUs = " + requested +
           ", CPUs per core = " + per_core;
  }
  std::string operator()(const TopologyAffinityError& error) const {
    switch (error.pod) {
      case PodLevelMode::kOff:
        return "Resources cannot be allocated with Topology locality";
      case PodLevelMode::kContainer:
        return "Pod Scope pod with pod-level resources failed admission with a container-level "
               "topology manager";
      case PodLevelMode::kPod:
        return "Pod Scope pod with pod-level resources failed admission under pod-scope topology "
               "manager";
    }
    return "";
  }
  std::string operator()(const NotEnoughCpus& error) const { return error.message(); }
  std::string operator()(const SharedPoolError& error) const {
    const auto text = [](MilliCpu cpu) { return Quantity::of_milli(cpu.count).canonical(); };
    return "Shared Pool Error: requested CPUs = " + std::to_string(error.requested) +
           ", the shared pool would be left with = " + text(error.left) +
           ", its pods requested = " + text(error.needed);
  }
  std::string operator()(const EmptyPodPool& error) const { return error.what; }
  std::string operator()(MemoryRefusal refusal) const {
    return std::string(headroom::message(refusal));
  }
};

}  // namespace

std::string_view reason(const CpuRefusal& refusal) {
  return std::visit(ReasonOf{}, refusal);
}

std::string message(const CpuRefusal& refusal) {
  return std::visit(MessageOf{}, refusal);
}

std::string reason_and_message(const CpuRefusal& refusal) {
  std::string text(reason(refusal));
  return text + ": " + message(refusal);
}

namespace {

// The CPUs of these requests if they are a whole number, else 0.
int whole_cpus(const ResourceList& requests) {
  const auto request = requests.find("cpu");
  if (request == requests.end() || request->second.sign() <= 0) return 0;
  if (request->second != Quantity::of(request->second.value())) return 0;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(request->second.value(), kMax));
}

int pool_cpus_requested(const Pod& pod) {
  return qos_class(pod) == QosClass::kGuaranteed ? whole_cpus(pod.pod_level->requests) : 0;
}

}  // namespace

int exclusive_cpus_requested(const Pod& pod, const Container& container, PodLevelMode mode) {
  const int count = whole_cpus(container.requests);
  if (count == 0 || qos_class(pod) != QosClass::kGuaranteed) return 0;
  if (!has_pod_level_resources(pod)) return count;
  if (mode == PodLevelMode::kOff || !is_guaranteed(container)) return 0;
  if (mode == PodLevelMode::kPod && pool_cpus_requested(pod) == 0) return 0;
  return count;
}

std::optional<Pod> with_admitted_cpus(const Pod& pod, const CpuState& state, PodLevelMode mode) {
  if (!state.entries.contains(pod.uid) || has_pod_pool(pod, mode)) return std::nullopt;
  std::optional<Pod> raised;
  for (const auto list : {&Pod::init_containers, &Pod::containers})
    for (std::size_t i = 0; i < (pod.*list).size(); ++i) {
      const Container& container = (pod.*list)[i];
      const int requested = exclusive_cpus_requested(pod, container, mode);
      const CpuSet* const has = exclusive_cpus(state, pod.uid, container.name);
      if (requested == 0 || !has) continue;
      // It may have fewer than at its admission: CPUs were unplugged.
      const int kept = std::min(has->size(), cpus_at_admission(state, pod.uid, container.name));
      if (requested >= kept) continue;
      if (!raised) raised = pod;
      Container& changed = ((*raised).*list)[i];
      for (ResourceList* const amounts : {&changed.requests, &changed.limits})
        (*amounts)["cpu"] = Quantity::of(kept);
    }
  return raised;
}

int exclusive_cpus_requested(const Pod& pod, PodLevelMode mode) {
  if (has_pod_pool(pod, mode)) return pool_cpus_requested(pod);
  std::int64_t running = 0;  // sidecars so far, then apps
  std::int64_t starting = 0;
  for (const Container& container : pod.init_containers) {
    const int wanted = exclusive_cpus_requested(pod, container, mode);
    if (container.sidecar)
      running += wanted;
    else
      starting = std::max(starting, running + wanted);
  }
  for (const Container& container : pod.containers)
    running += exclusive_cpus_requested(pod, container, mode);
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(std::max(running, starting), kMax));
}

namespace {

constexpr const char* kCpu = "cpu";
const ProviderHints kImpossible{{kCpu, HintList{}}};

std::string quoted(const CpuSet& cpus) {
  return '"' + cpus.format() + '"';
}

void add_overlaps(const CpuState& state, std::vector<StateFault>& find_faults) {
  const auto check = [&](const std::string& owner, const CpuSet& cpus) {
    if (!state.default_set.intersects(cpus)) return;
    find_faults.push_back({StateFault::Kind::kOverlap, owner + " cpuset: " + quoted(cpus) +
                                                           " overlaps with default cpuset " +
                                                           quoted(state.default_set)});
  };
  for (const auto& [pod, containers] : state.entries)
    for (const auto& [container, cpus] : containers) {
      std::string owner = "pod: " + pod;
      owner += ", container: " + container;
      check(owner, cpus);
    }
  for (const auto& [pod, cpus] : state.pod_entries)
    check("pod: " + pod, cpus);
}

// CPUs that the pod's containers have; absent where one of them has another number than it wants.
std::optional<CpuSet> assigned_if_complete(const CpuState& state, const Pod& pod,
                                           PodLevelMode mode) {
  CpuSet assigned;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list) {
      const CpuSet* const cpus = exclusive_cpus(state, pod.uid, container.name);
      if (!cpus) continue;
      if (cpus->size() != exclusive_cpus_requested(pod, container, mode)) return std::nullopt;
      assigned |= *cpus;
    }
  return assigned;
}

}  // namespace

CpuReservation reservation_of(MilliCpu system_and_kube) {
  const std::int64_t whole = (std::max<std::int64_t>(0, system_and_kube.count) + 999) / 1000;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  return {.count = static_cast<int>(std::min(whole, kMax)), .amount = system_and_kube};
}

// --- making ----------------------------------------------------------------------------------

tl::expected<StaticPolicy, PolicyErrors> StaticPolicy::of(StaticPolicyConfig config) {
  StaticPolicy policy(std::move(config));
  PolicyErrors policy_errors =
      conflicts(policy.config_.options, policy.topology(), policy.config_.topology_rules);
  if (const auto policy_error = policy.reserve()) policy_errors.push_back(*policy_error);
  if (!policy_errors.empty()) return tl::make_unexpected(policy_errors);
  return policy;
}

std::optional<std::string> StaticPolicy::reserve() {
  const CpuReservation& wanted = config_.reservation;
  if (wanted.cpus && !wanted.cpus->subset_of(topology().cpus()))
    return "reservedSystemCPUs " + quoted(*wanted.cpus - topology().cpus()) +
           " are not among this machine's CPUs " + quoted(topology().cpus());
  const int count = wanted.cpus ? wanted.cpus->size() : wanted.count;
  if (count <= 0)
    return "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than "
           "zero";
  if (wanted.cpus) {
    reserved_ = *wanted.cpus;
  } else {
    const TakeResult taken =
        take(topology(), topology().cpus(), count, take_rules(config_.options, topology()));
    if (!taken) return "unable to reserve the required amount of CPUs: " + taken.error().message();
    reserved_ = *taken;
  }
  reserved_cores_ = topology().widened(reserved_, Level::kCore);
  return std::nullopt;
}

CpuSet StaticPolicy::managed_cpus() const {
  return config_.options.strict_reservation ? topology().cpus() - reserved_ : topology().cpus();
}

std::vector<StateFault> StaticPolicy::find_faults(const CpuState& state) const {
  using Kind = StateFault::Kind;
  const CpuSet assigned = assigned_cpus(state);
  const CpuSet& shared = state.default_set;
  if (shared.empty() && state.entries.empty() && state.pod_entries.empty()) return {};
  if (shared.empty()) return {{Kind::kEmptyDefault, "default cpuset cannot be empty"}};
  std::vector<StateFault> find_faults;
  if (config_.options.strict_reservation) {
    if (reserved_.intersects(shared))
      find_faults.push_back(
          {Kind::kReservedShared, "some of strictly reserved cpus: " + quoted(reserved_) +
                                      " are present in defaultCpuSet: " + quoted(shared)});
  } else if (!reserved_.subset_of(shared)) {
    find_faults.push_back(
        {Kind::kReservedMissing, "not all reserved cpus: " + quoted(reserved_) +
                                     " are present in defaultCpuSet: " + quoted(shared)});
  }
  add_overlaps(state, find_faults);
  if ((shared | assigned) != managed_cpus())
    find_faults.push_back(
        {Kind::kOtherCpus, "current set of available CPUs " + quoted(managed_cpus()) +
                               " doesn't match with CPUs in state " + quoted(shared | assigned)});
  return find_faults;
}

// --- hints -----------------------------------------------------------------------------------

ProviderHints StaticPolicy::hints_for(int count, CpuSet available, const CpuSet& reusable) const {
  return {{kCpu, cpu_hints(topology(), {.count = count,
                                        .available = std::move(available),
                                        .reusable = on_this_machine(reusable),
                                        .align_by_socket = config_.options.align_by_socket})}};
}

ProviderHints StaticPolicy::hints(const CpuState& state, const Pod& pod,
                                  const Container& container) const {
  const int count = exclusive_cpus_requested(pod, container, pod_level_mode());
  if (count == 0) return {};
  if (const CpuSet* const has = exclusive_cpus(state, pod.uid, container.name))
    return has->size() == count ? hints_for(count, *has, {}) : kImpossible;
  return hints_for(count, available(state), reusable_cpus(state, pod));
}

ProviderHints StaticPolicy::hints(const CpuState& state, const Pod& pod) const {
  const int count = exclusive_cpus_requested(pod, pod_level_mode());
  if (count == 0) return {};
  if (has_pod_pool(pod, pod_level_mode())) return pool_hints(state, pod, count);
  const auto assigned = assigned_if_complete(state, pod, pod_level_mode());
  if (!assigned) return kImpossible;
  return hints_for(count, available(state), reusable_cpus(state, pod) | *assigned);
}

// --- allocating ------------------------------------------------------------------------------

// CPUs of the pool whose core is partly reserved do not count. The kubelet does not count the CPUs
// that the pod may reuse either, and so refuses a pod whose init container took the last cores.
std::optional<CpuRefusal> StaticPolicy::check_smt_alignment(const CpuSet& pool, int count) const {
  if (!config_.options.full_pcpus_only) return std::nullopt;
  const int per_core = topology().cpus_per(Level::kCore);
  if (count % per_core != 0) return SmtAlignmentError{count, per_core};
  const int physical = (pool - reserved_cores_).size();
  if (count > physical) return SmtAlignmentError{count, per_core, physical};
  return std::nullopt;
}

CpuSet StaticPolicy::cpus_of_affinity(std::optional<NodeSet> affinity) const {
  if (!affinity) return {};
  const CpuSet cpus = topology().cpus_of(*affinity);
  return config_.options.align_by_socket ? topology().widened(cpus, Level::kSocket) : cpus;
}

// As many as there are where the hint points; the rest from anywhere.
TakeResult StaticPolicy::take_with_affinity(const CpuSet& pool, int count,
                                            std::optional<NodeSet> affinity) const {
  const TakeRules rules = take_rules(config_.options, topology());
  const CpuSet aligned = pool & cpus_of_affinity(affinity);
  TakeResult first = take(topology(), aligned, std::min(count, aligned.size()), rules);
  if (!first) return first;
  TakeResult rest = take(topology(), pool - *first, count - first->size(), rules);
  if (!rest) return rest;
  return *first | *rest;
}

tl::expected<CpuState, CpuRefusal> StaticPolicy::allocate(CpuState state, const Pod& pod,
                                                          const Container& container,
                                                          std::optional<NodeSet> affinity) const {
  const int count = exclusive_cpus_requested(pod, container, pod_level_mode());
  if (count == 0) return state;
  // Before the check of alignment: the kubelet, the other way round, refuses a container its own
  // CPUs when it is admitted again after a restart on a full node.
  if (exclusive_cpus(state, pod.uid, container.name)) return state;
  // The kubelet's pool, siblings of reserved CPUs and all, even under full-pcpus-only: when a hint
  // or an uncore cache is tight, one of them can be handed out.
  const CpuSet pool = available(state) | on_this_machine(reusable_cpus(state, pod));
  if (const auto refusal = check_smt_alignment(pool, count)) return tl::make_unexpected(*refusal);
  const TakeResult taken = take_with_affinity(pool, count, affinity);
  if (!taken) return tl::make_unexpected(CpuRefusal{taken.error()});
  state.default_set -= *taken;
  state.entries[pod.uid][container.name] = *taken;
  return state;
}

}  // namespace headroom
