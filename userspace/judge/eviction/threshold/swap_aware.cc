// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/threshold/swap_aware.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace headroom::judge_eviction {
namespace {

constexpr double kFillMemory = 1.0;    // seconds: the weight of a sample decays by 1/e in this time
constexpr double kThrashMemory = 3.0;  // the same, of refaults, reclaim and stalls
constexpr double kFillAhead = 1.0;     // seconds that are reserved
constexpr double kThrashingStalled = 0.25, kThrashingReturned = 0.5;
constexpr double kNotKeepingUp = 0.6;
constexpr double kPodsMemory = 2.0;  // as kThrashMemory, of pods within their requests
constexpr double kPodStalled = 0.1;
// While swap fills faster than this, in bytes per second, the stalls of pods are counted this
// often.
constexpr double kFills = 1 << 20;
constexpr Duration kPodStallsPeriod = std::chrono::milliseconds(250);
constexpr std::int64_t kRecentPart = std::int64_t{16} << 20;
constexpr double kPriorRatio = 0.5;

double seconds_between(Instant from, Instant to) {
  return seconds_of(to - from);
}

void average(double& mean, double sample, double seconds, double memory) {
  mean += (1 - std::exp(-seconds / memory)) * (sample - mean);
}

std::int64_t used(const SwapReading& reading) {
  return reading.disk.total - reading.disk.free + reading.zram.total - reading.zram.free;
}

// A counter that fell, or is unknown, counts nothing.
double difference(const std::optional<std::uint64_t>& from,
                  const std::optional<std::uint64_t>& to) {
  return from && to && *to > *from ? static_cast<double>(*to - *from) : 0;
}

SwapHistory::Recent advance(const SwapHistory::Recent& before,
                            const SwapReading::Compressed& store) {
  const std::int64_t grown = store.stored - before.stored;
  if (grown <= -kRecentPart || (grown < 0 && !before.ratio))
    return {.stored = store.stored, .memory = store.memory, .ratio = {}};
  if (grown < kRecentPart) return before;
  const double ratio =
      static_cast<double>(store.memory - before.memory) / static_cast<double>(grown);
  return {.stored = store.stored, .memory = store.memory, .ratio = std::clamp(ratio, 0.0, 1.0)};
}

// Memory for each byte that is stored.
double ratio(const SwapReading::Compressed& store, const SwapHistory::Recent& recent) {
  const double of_all = (static_cast<double>(store.memory) + kPriorRatio * kRecentPart) /
                        static_cast<double>(store.stored + kRecentPart);
  return std::clamp(std::max(of_all, recent.ratio.value_or(0)), 0.0, 1.0);
}

std::int64_t zram_gain(const SwapReading& reading, const SwapHistory& history) {
  const double taken = ratio(reading.zram_pool, history.zram);
  auto storable = static_cast<double>(reading.zram.free);
  if (taken > 0)
    storable = std::min(storable, static_cast<double>(reading.zram_pool.memory_left) / taken);
  return static_cast<std::int64_t>(storable * (1 - taken));
}

std::int64_t disk_gain(const SwapReading& reading, const SwapHistory& history) {
  const double grows_by =
      std::min(static_cast<double>(reading.zswap.memory_left),
               static_cast<double>(reading.disk.free) * ratio(reading.zswap, history.zswap));
  return reading.disk.free - static_cast<std::int64_t>(grows_by);
}

bool is_thrashing(const SwapHistory& history) {
  if (history.stalled >= kNotKeepingUp || history.pods_stalled >= kPodStalled) return true;
  return history.stalled >= kThrashingStalled && history.reclaim_rate > 0 &&
         history.refault_rate >= kThrashingReturned * history.reclaim_rate;
}

// What the next second fills, in bytes of the gain.
std::int64_t filling(const SwapReading& reading, const SwapHistory& history, std::int64_t gain) {
  const std::int64_t free = reading.disk.free + reading.zram.free;
  if (free <= 0 || history.fill_rate <= 0) return 0;
  const double share = std::min(1.0, history.fill_rate * kFillAhead / static_cast<double>(free));
  return static_cast<std::int64_t>(share * static_cast<double>(gain));
}

void show_location(const SwapReading& reading, SwapRoom& room) {
  room.resident = reading.resident;
  room.cold = reading.cold;
  room.compressed = reading.zram_pool.stored + reading.zswap.stored;
  room.compressed_size = reading.zram_pool.memory + reading.zswap.memory;
  room.incompressible = reading.incompressible;
  // A page in zswap keeps its place on the disk.
  room.on_disk =
      std::max<std::int64_t>(reading.disk.total - reading.disk.free - reading.zswap.stored, 0);
}

}  // namespace

SwapHistory advance(const SwapHistory& before, const SwapReading& reading) {
  SwapHistory after = before;
  after.zram = advance(before.zram, reading.zram_pool);
  after.zswap = advance(before.zswap, reading.zswap);
  after.last = reading;
  if (!before.last) return after;
  const SwapReading& last = *before.last;
  const bool same_devices =
      last.disk.total == reading.disk.total && last.zram.total == reading.zram.total;
  if (const double seconds = seconds_between(last.at, reading.at); seconds > 0 && same_devices)
    average(after.fill_rate, static_cast<double>(used(reading) - used(last)) / seconds, seconds,
            kFillMemory);
  if (const double seconds = seconds_between(last.counted_at, reading.counted_at); seconds > 0) {
    average(after.refault_rate, difference(last.refaults, reading.refaults) / seconds, seconds,
            kThrashMemory);
    average(after.reclaim_rate, difference(last.reclaimed, reading.reclaimed) / seconds, seconds,
            kThrashMemory);
    average(after.stalled, difference(last.stalled_micros, reading.stalled_micros) / 1e6 / seconds,
            seconds, kThrashMemory);
  }
  if (!reading.pods_stalled_micros)
    after.pods_stalled = 0;
  else if (const double seconds = seconds_between(last.pods_counted_at, reading.pods_counted_at);
           seconds > 0)
    average(after.pods_stalled,
            difference(last.pods_stalled_micros, reading.pods_stalled_micros) / 1e6 / seconds,
            seconds, kPodsMemory);
  return after;
}

SwapRoom swap_room(const SwapReading& reading, std::int64_t kubelet, const SwapHistory& history) {
  SwapRoom room{.kubelet = kubelet,
                .memory = reading.mem_available,
                .fill_rate = history.fill_rate,
                .stalled = history.stalled,
                .pods_stalled = history.pods_stalled,
                .refault_rate = history.refault_rate,
                .reclaim_rate = history.reclaim_rate};
  room.swap = reading.has_swap();
  show_location(reading, room);
  const bool thrashing = is_thrashing(history);
  if (thrashing) {
    room.memory = std::max<std::int64_t>(reading.mem_available - reading.cache_in_use, 0);
  } else {
    room.gain = zram_gain(reading, history) + disk_gain(reading, history);
    room.filling = filling(reading, history, room.gain);
  }
  if (!room.swap && !thrashing) {
    room.available = kubelet;
    return room;
  }
  const std::int64_t with_swap = room.memory + room.gain - room.filling;
  room.available = std::min(kubelet, with_swap);
  if (with_swap < kubelet)
    room.bound = thrashing ? SwapRoom::Bound::kThrashing : SwapRoom::Bound::kRoom;
  return room;
}

std::int64_t kernel_mem_available(const SwapReading& reading, std::int64_t mem_available,
                                  const SwapRoom& room, const SwapHistory& history) {
  if (room.in_force)
    return std::max<std::int64_t>(mem_available - (reading.mem_available - room.memory), 0) +
           room.gain - room.filling;
  const std::int64_t gain = zram_gain(reading, history) + disk_gain(reading, history);
  return mem_available + gain - filling(reading, history, gain);
}

std::optional<Instant> pod_stalls_due(const std::optional<SwapReading>& reading,
                                      const std::optional<SwapRoom>& room, std::int64_t limit) {
  if (!reading || !reading->pods_stalled_micros || !room || !room->in_force) return std::nullopt;
  if (room->memory > limit || room->fill_rate < kFills) return std::nullopt;
  return reading->pods_counted_at + kPodStallsPeriod;
}

void restart_thrashing(SwapHistory& history) {
  history.refault_rate = history.reclaim_rate = history.stalled = history.pods_stalled = 0;
}

}  // namespace headroom::judge_eviction
