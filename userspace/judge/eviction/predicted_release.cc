// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/predicted_release.h"

#include "judge/eviction/rank/rank.h"
#include "judge/eviction/threshold/threshold.h"
#include "judge/eviction/unit_selection.h"
#include "judge/eviction/victims.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

std::int64_t value_or_zero(std::uint64_t value) {
  return value == HR_UNKNOWN ? 0 : static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> count_of(std::optional<Bytes> bytes) {
  return bytes ? std::optional(bytes->count) : std::nullopt;
}

std::optional<std::int64_t> memory_of_processes(const hr_record& record) {
  return count_of(held_by_processes(record));
}

// The same with what the kernel holds for them, such as pipes and sockets.
std::optional<std::int64_t> charge_of(const hr_record& record) {
  return count_of(unreclaimable_charge(record));
}

std::optional<std::int64_t> with_swap(std::optional<std::int64_t> memory, const hr_record& record,
                                      SwapUse swap_use) {
  if (!memory || swap_use == SwapUse::kIgnored) return memory;
  return *memory + value_or_zero(record.swap_usage);
}

std::optional<Bytes> memory_and_swap(const PodReading* reading) {
  if (!reading || !reading->record || !(reading->record->valid & HR_MEMORY_USAGE))
    return std::nullopt;
  return Bytes{static_cast<std::int64_t>(reading->record->memory_usage) +
               value_or_zero(reading->record->swap_usage)};
}

Duration cpu_time(const hr_record& record) {
  return record.valid & HR_CPU ? Duration(static_cast<std::int64_t>(record.cpu_usage_ns))
                               : Duration::zero();
}

// What this victim has yet to give back; absent: unknown.
std::optional<std::int64_t> outstanding(const Victim& victim, Signal signal) {
  const bool same_unit = resource_of(victim.reason.signal) == resource_of(signal);
  return same_unit ? victim.due_before : std::nullopt;
}

}  // namespace

std::optional<Bytes> current_held(const Victim& victim, const PodReading* reading) {
  if (victim.part.unit != EvictionUnit::kContainer) return memory_and_swap(reading);
  const PartReading* part = reading ? reading_of(*reading, victim.part.cgroup) : nullptr;
  return part ? part->usage : std::nullopt;
}

bool is_sized(Signal signal) {
  return is_memory(signal) || signal == Signal::kPidAvailable || signal == Signal::kSwapAvailable;
}

std::optional<std::int64_t> predicted_release(Signal signal, const PodReading& reading,
                                              ImageStorage images, SwapUse swap_use) {
  if (is_disk(signal))
    return reading.disk ? std::optional(disk_usage(signal, images, *reading.disk)) : std::nullopt;
  if (!reading.record) return std::nullopt;
  if (wants_memory(signal)) {
    const auto memory = signal == Signal::kKernelMemAvailable
                            ? charge_of(*reading.record)
                            : memory_of_processes(*reading.record);
    return with_swap(memory, *reading.record, swap_use);
  }
  if (signal == Signal::kPidAvailable && (reading.record->valid & HR_PIDS))
    return static_cast<std::int64_t>(reading.record->pids_current);
  const hr_record& record = *reading.record;
  const bool has_swap = (record.valid & HR_MEMORY_USAGE) && record.swap_usage != HR_UNKNOWN;
  if (signal == Signal::kSwapAvailable && has_swap)
    return static_cast<std::int64_t>(record.swap_usage);
  return std::nullopt;
}

std::int64_t retained_after_kill(const History& history, const PodReading& reading, Signal signal,
                                 Instant at) {
  for (const Victim& victim : history.victims) {
    if (victim.cgroup != reading.cgroup || !victim.part.whole()) continue;
    const bool waits =
        gives_back(victim) || (victim.phase == Victim::Phase::kTimedOut && at < victim.sigterm_due);
    if (waits && resource_of(victim.reason.signal) == resource_of(signal))
      return victim.due.value_or(0);
  }
  return 0;
}

namespace {

constexpr Duration kExit = std::chrono::milliseconds(5);
constexpr std::int64_t kSmallPerMiB = 80'000'000 / 1024, kHugePerMiB = 4'000'000 / 1024;  // ns

}  // namespace

Duration predicted_time(Bytes held) {
  return kExit + Duration((held.count >> 20) * kSmallPerMiB);
}

Duration predicted_time(const PodReading& reading) {
  const auto held = reading.record ? memory_of_processes(*reading.record) : std::nullopt;
  if (!held) return kExit;
  const std::int64_t huge = std::min(
      *held, value_or_zero(reading.record->anon_thp) + value_or_zero(reading.record->shmem_thp));
  return predicted_time(Bytes{*held - huge}) + Duration((huge >> 20) * kHugePerMiB);
}

namespace {

// By memory.stat for a pod that dies, as memory.available is read from that of the root. Its
// memory.current falls at once. The statistics follow when they are flushed, and a flush that was
// interrupted keeps others from flushing: until it goes on, what has come back would neither be
// available yet nor still to come.
std::optional<std::int64_t> left_of_pod(Signal signal, const PodReading& reading,
                                        SwapUse swap_use) {
  if (signal != Signal::kMemoryAvailable || !reading.record)
    return predicted_release(signal, reading, {}, swap_use);
  return with_swap(count_of(held_by_statistics(*reading.record)), *reading.record, swap_use);
}

// What is left to come of the victim, of the pod or of the part that goes.
std::optional<std::int64_t> predicted_left(const Victim& victim, const PodReading& reading,
                                           SwapUse swap_use) {
  switch (victim.part.unit) {
    case EvictionUnit::kPod:
      return left_of_pod(victim.reason.signal, reading, swap_use);
    case EvictionUnit::kContainer: {
      const PartReading* part = reading_of(reading, victim.part.cgroup);
      return part && part->release ? std::optional(part->release->count) : std::nullopt;
    }
    case EvictionUnit::kProcess:
      break;  // all of it comes at once, when it exits
  }
  return std::nullopt;
}

}  // namespace

namespace {

void update_page_tables(Victim& victim, const PodReading* reading) {
  if (!reading || !reading->record || !(reading->record->valid & HR_MEMORY_STAT)) return;
  victim.page_tables = Bytes{value_or_zero(reading->record->pagetables)};
}

// Page tables that are worth waiting for.
constexpr Bytes kLeastPageTables = 16_MiB;

// Of the victim's, what the node still has at most; absent: unknown, or the signal is not of them.
std::optional<std::int64_t> page_tables_left(const Victim& victim, const Snapshot& snapshot) {
  if (victim.reason.signal != Signal::kKernelMemAvailable || !snapshot.page_tables)
    return std::nullopt;
  const std::int64_t left = std::min(victim.page_tables, *snapshot.page_tables).count;
  return left < kLeastPageTables.count ? 0 : left;
}

}  // namespace

bool waits_for_page_tables(const Victim& victim, const Snapshot& snapshot) {
  return page_tables_left(victim, snapshot) && victim.page_tables >= kLeastPageTables &&
         victim.due.value_or(0) <= victim.page_tables.count;
}

bool follow_page_tables(Victim& victim, const Snapshot& snapshot) {
  const auto left = page_tables_left(victim, snapshot);
  const bool rest_is_over =
      waits_for_page_tables(victim, snapshot) || snapshot.at >= victim.sigterm_due;
  if (!left || !victim.due || !rest_is_over || *left >= *victim.due) return false;
  victim.due = *left;
  return true;
}

void update_expected_release(Victim& victim, const PodReading* reading, SwapUse swap_use) {
  update_page_tables(victim, reading);
  victim.due_before = victim.due;
  const bool killed =
      victim.phase == Victim::Phase::kKilled || victim.phase == Victim::Phase::kTimedOut;
  if (!killed || !victim.due || !reading || is_disk(victim.reason.signal)) return;
  if (const auto left = predicted_left(victim, *reading, swap_use))
    victim.due = std::min(*left, *victim.due);
}

void update_least_held(Victim& victim, const PodReading* reading, SwapUse swap_use) {
  update_expected_release(victim, reading, swap_use);
  if (const auto left = current_held(victim, reading))
    victim.left = victim.left ? std::min(*left, *victim.left) : *left;
}

namespace {

// What a cgroup without processes still holds of what comes back by itself; absent: unknown. Its
// anonymous memory is that of a process that has ended, as are its page tables, and so is what that
// has in swap; shared memory may be files, which stay.
std::optional<std::int64_t> left_by_processes(Signal signal, const PodReading& reading,
                                              SwapUse swap_use) {
  constexpr Bytes kNothing = 1_MiB;
  const auto held = predicted_release(signal, reading, {}, swap_use);
  if (signal == Signal::kPidAvailable || !held) return held;
  if (reading.record->anon == HR_UNKNOWN) return std::nullopt;
  auto left = static_cast<std::int64_t>(reading.record->anon);
  if (signal == Signal::kKernelMemAvailable) left += value_or_zero(reading.record->pagetables);
  if (left < kNothing.count) return 0;
  if (signal == Signal::kSwapAvailable) return held;
  return with_swap(left, *reading.record, swap_use);
}

}  // namespace

bool update_returned(Victim& victim, const PodReading* reading, SwapUse swap_use,
                     std::int64_t& risen) {
  update_page_tables(victim, reading);
  victim.due_before = victim.due;
  if (!victim.due) return false;
  const auto held = reading && reading->record
                        ? left_by_processes(victim.reason.signal, *reading, swap_use)
                        : std::nullopt;
  const std::int64_t left =
      held ? std::min(*held, *victim.due) : *victim.due - std::min(risen, *victim.due);
  const std::int64_t returned = *victim.due - left;
  risen -= std::min(risen, returned);
  victim.due = left;
  return returned > 0;
}

namespace {

// Thousands of tasks take their time to exit, and no other victim makes them exit sooner.
Duration max_exit_time(const Victim& victim) {
  return victim.reason.signal == Signal::kPidAvailable ? std::chrono::seconds(120)
                                                       : std::chrono::seconds(30);
}

}  // namespace

void extend_deadline_while_exiting(Victim& victim, const PodReading* reading, Instant at) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  constexpr Duration kStill = seconds(1), kSomeTime = milliseconds(1);
  constexpr Bytes kSomeMemory = 1_MiB;
  if (victim.phase != Victim::Phase::kKilled) return;
  const auto left = current_held(victim, reading);
  // What lives again does not get on with dying.
  if (!left || has_new_process_after_kill(victim, reading)) return;
  // Of a part the pod's CPU time says nothing: others in it live on.
  const Duration ran = victim.part.whole() ? cpu_time(*reading->record) : victim.ran;
  // The first pass after the kill has nothing to compare with.
  if (victim.left && *victim.left - *left < kSomeMemory && ran - victim.ran < kSomeTime) return;
  victim.left = victim.left ? std::min(*left, *victim.left) : *left;
  victim.ran = ran;
  victim.deadline =
      std::max(victim.deadline, std::min(at + kStill, victim.killed_at + max_exit_time(victim)));
}

std::optional<std::int64_t> shortfall(const Policy& policy, const Snapshot& snapshot,
                                      const Verdict& verdict, std::uint32_t index) {
  const Threshold& threshold = policy.thresholds[index];
  const Observation& seen = *of(snapshot.observations, threshold.signal);
  std::int64_t missing = *verdict.thresholds[index].limit - seen.available;
  if (threshold.min_reclaim) missing += resolve(*threshold.min_reclaim, seen.capacity);
  for (const Victim& victim : verdict.after.victims) {
    if (!is_awaited(victim, threshold.signal)) continue;
    const auto expected = outstanding(victim, threshold.signal);
    if (!expected) return std::nullopt;
    missing -= *expected;
  }
  return missing;
}

}  // namespace headroom::judge_eviction
