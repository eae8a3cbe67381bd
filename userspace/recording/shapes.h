// SPDX-License-Identifier: Apache-2.0
// The members of each type that go into a recording, in order: all of them.
//
// Each function takes its value apart by a structured binding, so a member added to a type does not
// compile until it is recorded as well; kFormat (tape.h) then goes up by one.
#pragma once

#include "recording/system_use.h"
#include "recording/wire.h"

#include <headroom/judge.h>
#include <headroom/policy.h>
#include <headroom/snapshot.h>

#include <algorithm>

namespace headroom::recording {

template <>
inline constexpr std::uint64_t kEnumerators<Signal> = kSignals;
template <>
inline constexpr std::uint64_t kEnumerators<Mode> = 2;
template <>
inline constexpr std::uint64_t kEnumerators<Cause> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<StorageLimit> = 4;
template <>
inline constexpr std::uint64_t kEnumerators<Act> = 9;
template <>
inline constexpr std::uint64_t kEnumerators<Outcome::Result> = 5;
template <>
inline constexpr std::uint64_t kEnumerators<Victim::Phase> = 6;
template <>
inline constexpr std::uint64_t kEnumerators<EvictionUnit> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<PodSource> = 2;
template <>
inline constexpr std::uint64_t kEnumerators<PodDescription> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<QosClass> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<Volume::Kind> = 5;
template <>
inline constexpr std::uint64_t kEnumerators<LabelRequirement::Operator> = 6;
template <>
inline constexpr std::uint64_t kEnumerators<HostPort::Protocol> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<TaintEffect> = 3;
template <>
inline constexpr std::uint64_t kEnumerators<SystemRole> = 4;
// The first two are written as the bool was that stood here before.
template <>
inline constexpr std::uint64_t kEnumerators<Toleration::Operator> = 5;

// What the judge relies on: a damaged recording may have it otherwise.
inline void require(Writer&, bool) {}
inline void require(Reader& io, bool holds) {
  if (!holds) io.fail();
}

constexpr bool is_share(std::optional<float> share) {
  return !share || (*share >= 0 && *share <= 1);
}

// The signals that formats up to 7 have; values of later ones are at the end of their frames.
inline constexpr std::size_t kFirstSignals = 11;
// Without cpu.pressure and its condition: what decisions depend on of them is in CpuEvictions.
inline constexpr std::size_t kRecordedSignals = 12, kRecordedConditions = 3;

template <class Io, class All>
void put_first_signals(Io& io, All& all) {
  for (std::size_t i = 0; i < kFirstSignals; ++i)
    io(all[i]);
}
template <class Io, class... All>
void put_later_signals(Io& io, All&... all) {
  for (std::size_t i = kFirstSignals; i < kRecordedSignals; ++i)
    io(all[i]...);
}

// Declared before use: the generic put()s find them by their arguments.
#define HEADROOM_SERIALIZE(Type)  \
  template <class Io, Is<Type> T> \
  void put(Io& io, T& value)

HEADROOM_SERIALIZE(Bytes) {
  auto& [count] = value;
  io(count);
  require(io, is_possible(count));
}
HEADROOM_SERIALIZE(CgroupId) {
  auto& [id] = value;
  io(id);
}
HEADROOM_SERIALIZE(Fraction) {
  auto& [of_one] = value;
  io(of_one);
}

// By its canonical text, which is exact.
inline void put(Writer& io, const Quantity& value) {
  io(value.canonical());
}
inline void put(Reader& io, Quantity& value) {
  std::string text;
  io(text);
  if (!io.good()) return;
  const auto parsed = Quantity::parse(text);
  if (!parsed) return io.fail();
  value = *parsed;
}

inline void put(Writer& io, const ThresholdValue& value) {
  const bool fraction = std::holds_alternative<Fraction>(value);
  io(fraction);
  std::visit([&](const auto& held) { io(held); }, value);
}
inline void put(Reader& io, ThresholdValue& value) {
  bool fraction = false;
  io(fraction);
  if (fraction) {
    io(value.emplace<Fraction>());
  } else {
    io(value.emplace<Quantity>());
  }
}

// --- pods ----------------------------------------------------------------------------------------

HEADROOM_SERIALIZE(Container) {
  auto& [name, requests, limits, sidecar, pre_stop] = value;
  io(name, requests, limits, sidecar, pre_stop);
}
HEADROOM_SERIALIZE(Volume) {
  auto& [name, kind, in_memory, size_limit, host_path] = value;
  io(name, kind, in_memory, size_limit, host_path);
}
HEADROOM_SERIALIZE(LabelRequirement) {
  auto& [key, op, values] = value;
  io(key, op, values);
}
HEADROOM_SERIALIZE(NodeTerm) {
  auto& [labels, fields] = value;
  io(labels, fields);
}
HEADROOM_SERIALIZE(PreferredTerm) {
  auto& [weight, term] = value;
  io(weight, term);
}
HEADROOM_SERIALIZE(HostPort) {
  auto& [port, protocol, address] = value;
  io(port, protocol, address);
}
HEADROOM_SERIALIZE(Taint) {
  auto& [key, text, effect] = value;
  io(key, text, effect);
}
HEADROOM_SERIALIZE(Toleration) {
  auto& [key, text, op, effect, seconds] = value;
  io(key, text, op, effect, seconds);
}
HEADROOM_SERIALIZE(Placement) {
  auto& [node_name, node_selector, required, preferred, tolerations, host_ports, daemon_set] =
      value;
  io(node_name, node_selector, required, preferred, tolerations, host_ports, daemon_set);
}
HEADROOM_SERIALIZE(Pod) {
  auto& [uid, name, pod_namespace, source, priority, priority_class, is_static, declared_qos, grace,
         init_containers, containers, overhead, pod_level, labels, annotations, placement, volumes,
         rootfs_path, logs_path, ignored_fields] = value;
  io(uid, name, pod_namespace, source, priority, priority_class, is_static, declared_qos, grace);
  io(init_containers, containers, overhead, pod_level, labels, annotations, placement, volumes);
  io(rootfs_path, logs_path);
  static_cast<void>(ignored_fields);  // not recorded: no decision depends on it
}

// --- policy --------------------------------------------------------------------------------------

HEADROOM_SERIALIZE(Threshold) {
  auto& [signal, limit, grace, min_reclaim] = value;
  io(signal, limit, grace, min_reclaim);
}
HEADROOM_SERIALIZE(LadderPolicy) {
  auto& [reclaim_margin, lower_high_margin, reclaim_step, lower_high_limit, stuck_duration,
         raise_high_duration, evict_stuck] = value;
  io(reclaim_margin, lower_high_margin, reclaim_step, lower_high_limit, stuck_duration,
     raise_high_duration, evict_stuck);
  require(io, is_share(reclaim_margin) && is_share(lower_high_margin));
}
HEADROOM_SERIALIZE(Policy) {
  auto& [thresholds, pressure_transition, max_pod_grace, mode, hard_grace, taints,
         local_storage_isolation, evict_static_culprits, can_reclaim_containers, can_reclaim_images,
         reclaim_timeout, remove_empty_dirs, eviction_unit, ladder, swap_aware, cpu_eviction_period,
         pressure_window, fastest_fill, check_floor, check_ceiling, sweep_period] = value;
  io(thresholds, pressure_transition, max_pod_grace, mode, hard_grace, taints);
  require(io, std::ranges::find(taints, nullptr) == taints.end());
  io(local_storage_isolation, evict_static_culprits, can_reclaim_containers, can_reclaim_images);
  io(reclaim_timeout, remove_empty_dirs, eviction_unit, ladder, pressure_window, fastest_fill);
  io(check_floor, check_ceiling, sweep_period);
  // Of formats 7 and 9: at the end of their frames (tape.cc).
  static_cast<void>(swap_aware);
  static_cast<void>(cpu_eviction_period);
}

// --- what is read --------------------------------------------------------------------------------

HEADROOM_SERIALIZE(Observation) {
  auto& [available, capacity, at, error] = value;
  io(available, capacity, at);
  static_cast<void>(error);  // of format 14: at the end of its frame (tape.cc)
  require(io, is_possible(available) && is_possible(capacity));
}
HEADROOM_SERIALIZE(SwapReading::Space) {
  auto& [total, free] = value;
  io(total, free);
}
HEADROOM_SERIALIZE(SwapReading::Compressed) {
  auto& [stored, memory, memory_left] = value;
  io(stored, memory, memory_left);
}
HEADROOM_SERIALIZE(SwapReading) {
  auto& [at, mem_available, cache_in_use, resident, disk, zram, zram_pool, incompressible, cold,
         zswap, counted_at, refaults, reclaimed, stalled_micros, pods_counted_at,
         pods_stalled_micros] = value;
  io(at, mem_available, cache_in_use, resident, disk, zram, zram_pool, incompressible, zswap);
  io(counted_at, refaults, reclaimed, stalled_micros);
  static_cast<void>(cold);  // no decision depends on it
  static_cast<void>(pods_counted_at), static_cast<void>(pods_stalled_micros);  // put_pod_stalls()
}
HEADROOM_SERIALIZE(SwapHistory::Recent) {
  auto& [stored, memory, ratio] = value;
  io(stored, memory, ratio);
}
HEADROOM_SERIALIZE(SwapHistory) {
  auto& [last, fill_rate, zram, zswap, refault_rate, reclaim_rate, stalled, pods_stalled] = value;
  io(last, fill_rate, zram, zswap, refault_rate, reclaim_rate, stalled);
  static_cast<void>(pods_stalled);  // put_pod_stalls()
}
HEADROOM_SERIALIZE(ImageStorage) {
  auto& [dedicated, split, apart] = value;
  io(dedicated, split, apart);
}
HEADROOM_SERIALIZE(FsUsage) {
  auto& [used, inodes] = value;
  io(used, inodes);
}
HEADROOM_SERIALIZE(ContainerUsage) {
  auto& [name, rootfs, logs] = value;
  io(name, rootfs, logs);
}
HEADROOM_SERIALIZE(VolumeUsage) {
  auto& [name, usage, ranked, counted] = value;
  io(name, usage, ranked, counted);
}
HEADROOM_SERIALIZE(DiskUsage) {
  auto& [at, containers, volumes] = value;
  io(at, containers, volumes);
}

// --- the inside of a pod ------------------------------------------------------------------------

HEADROOM_SERIALIZE(ProcessIdentity) {
  auto& [pid, started] = value;
  io(pid, started);
}
HEADROOM_SERIALIZE(Part) {
  auto& [unit, cgroup, process, comm, group] = value;
  io(unit, cgroup, process, comm, group);
}
HEADROOM_SERIALIZE(PartReading) {
  auto& [cgroup, container, oom_group, populated, memory_request, usage, working_set, release, high,
         max, stalled] = value;
  io(cgroup, container, oom_group, populated, memory_request, usage, working_set, release, high);
  io(stalled);
  static_cast<void>(max);  // of format 15: after all parts (pods_delta.cc)
}
HEADROOM_SERIALIZE(ProcessReading) {
  auto& [named, comm, cgroup, group, held] = value;
  io(named, comm, cgroup, group, held);
}
HEADROOM_SERIALIZE(PodParts) {
  auto& [parts, largest, oom_group, stalled] = value;
  io(parts, largest, oom_group, stalled);
}

// --- what is decided and remembered --------------------------------------------------------------

HEADROOM_SERIALIZE(Reason) {
  auto& [cause, signal, hard, threshold, available, capacity, sampled_at, first_crossed, last_clear,
         taint, limit, subject, used] = value;
  io(cause, signal, hard, threshold, available, capacity, sampled_at, first_crossed, last_clear);
  io(taint, limit, subject, used);
  require(io, cause != Cause::kTaint || taint);
}
HEADROOM_SERIALIZE(RankInfo) {
  auto& [rank, candidates, working_set, memory_request, usage, request, predicted, predicted_in] =
      value;
  io(rank, candidates, working_set, memory_request, usage, request, predicted, predicted_in);
}
HEADROOM_SERIALIZE(ReclaimSteps) {
  auto& [containers, images] = value;
  io(containers, images);
}
HEADROOM_SERIALIZE(Decision) {
  auto& [act, pod, cgroup, reason, rank_info, steps, part, bytes, decided_at, deadline] = value;
  io(act, pod, cgroup, reason, rank_info, steps, part, bytes, decided_at, deadline);
  require(io, act == Act::kReclaim || pod);
}
HEADROOM_SERIALIZE(Outcome) {
  auto& [decision, result, error, at] = value;
  io(decision, result, error, at);
}
HEADROOM_SERIALIZE(EvictionEnd) {
  auto& [pod, cgroup, reason, terminated_at, killed_at, ended_at, gone, memory_returned, part] =
      value;
  io(pod, cgroup, reason, terminated_at, killed_at, ended_at, gone, memory_returned, part);
  require(io, pod != nullptr);
}
HEADROOM_SERIALIZE(ThresholdHistory) {
  auto& [first_observed, met, last_clear] = value;
  io(first_observed, met, last_clear);
}
HEADROOM_SERIALIZE(Victim) {
  auto& [pod, cgroup, reason, phase, terminated_at, killed_at, deadline, sigterm_due, gone_at, held,
         due_before, due, memory_request, left, ran, part, page_tables] = value;
  io(pod, cgroup, reason, phase, terminated_at, killed_at, deadline, sigterm_due, gone_at, held);
  io(due_before, due, memory_request, left, ran, part);
  static_cast<void>(page_tables);  // of format 13: at the end of its frame (tape.cc)
  require(io, pod != nullptr);
}
HEADROOM_SERIALIZE(Reclaim) {
  auto& [begun, ended, deadline] = value;
  io(begun, ended, deadline);
}
HEADROOM_SERIALIZE(Trend) {
  auto& [last, per_second] = value;
  io(last, per_second);
}
HEADROOM_SERIALIZE(TaintTimer) {
  auto& [cgroup, started, length] = value;
  io(cgroup, started, length);
}
HEADROOM_SERIALIZE(PartialEviction) {
  auto& [pod, killed_at] = value;
  io(pod, killed_at);
}
HEADROOM_SERIALIZE(MemoryHighOverride) {
  auto& [pod, cgroup, part, relaxed, found, set, since, until, retry, ending] = value;
  io(pod, cgroup, part, relaxed, found, set, since, until, retry, ending);
  require(io, pod != nullptr);
}
HEADROOM_SERIALIZE(Throttled) {
  auto& [pod, cgroup, since, stalled_before, stalled, last, relaxed] = value;
  io(pod, cgroup, since, stalled_before, stalled, last, relaxed);
}
HEADROOM_SERIALIZE(LadderHistory::Exhausted) {
  auto& [cgroup, until] = value;
  io(cgroup, until);
}
HEADROOM_SERIALIZE(LadderHistory) {
  auto& [taking, next_step_at, above_margin_since, next_lowering_at, exhausted, held, throttled] =
      value;
  io(taking, next_step_at, above_margin_since, next_lowering_at, exhausted, held, throttled);
}
HEADROOM_SERIALIZE(History) {
  auto& [thresholds, last_pressure, last_sample, trends, victims, taint_timers, taints_checked_at,
         reclaims, disk_settles_at, partial_evictions, ladder, swap, cpu_evicted_at] = value;
  io(thresholds);
  for (std::size_t i = 0; i < kRecordedConditions; ++i)
    io(last_pressure[i]);
  put_first_signals(io, last_sample);
  put_first_signals(io, trends);
  io(victims, taint_timers, taints_checked_at);
  put_first_signals(io, reclaims);
  io(disk_settles_at, partial_evictions, ladder);
  // Of formats 7 and 9: at the end of their frames (tape.cc).
  static_cast<void>(swap);
  static_cast<void>(cpu_evicted_at);
}

HEADROOM_SERIALIZE(MilliCpu) {
  auto& [count] = value;
  io(count);
}
HEADROOM_SERIALIZE(CpuUse) {
  auto& [used, held_up] = value;
  io(used, held_up);
}

// --- what is reserved ----------------------------------------------------------------------------

HEADROOM_SERIALIZE(ReservedAmounts) {
  auto& [milli_cpu, memory, ephemeral_storage, pids] = value;
  io(milli_cpu, memory, ephemeral_storage, pids);
}
HEADROOM_SERIALIZE(NodeReserves) {
  auto& [kube, system] = value;
  io(kube, system);
}

#undef HEADROOM_SERIALIZE

// What evictions for cpu.pressure depend on of the history.
template <class Io, class AnyHistory>
void put_cpu_history(Io& io, AnyHistory& history) {
  io(history.cpu_evicted_at, history.last_sample[static_cast<std::size_t>(Signal::kCpuPressure)]);
}

// Of format 11.
template <class Io, Is<SwapReading> Reading>
void put_pod_stalls(Io& io, Reading& reading) {
  io(reading.pods_counted_at, reading.pods_stalled_micros);
}
template <class Io, Is<SwapHistory> AnyHistory>
void put_pod_stalls(Io& io, AnyHistory& history) {
  io(history.pods_stalled);
  if (history.last) put_pod_stalls(io, *history.last);
}

// Of format 13.
template <class Io, Is<History> AnyHistory>
void put_page_tables(Io& io, AnyHistory& history) {
  for (auto& victim : history.victims)
    io(victim.page_tables);
}

}  // namespace headroom::recording
