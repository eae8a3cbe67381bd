// SPDX-License-Identifier: Apache-2.0
#include "judge/eviction/storage_limits.h"

#include "judge/eviction/selection.h"
#include "judge/eviction/victims.h"

#include <algorithm>

namespace headroom::judge_eviction {
namespace {

constexpr std::string_view kStorage = "ephemeral-storage";

struct Excess {
  StorageLimit limit = StorageLimit::kNone;
  std::uint32_t subject = 0;
  std::int64_t allowed = 0;
  std::int64_t used = 0;
};

std::int64_t used_bytes(const FsUsage& usage) {
  return usage.used ? usage.used->count : 0;
}

std::optional<Excess> over_size_limit(const Pod& pod, const DiskUsage& disk) {
  for (std::uint32_t i = 0; i < pod.volumes.size(); ++i) {
    const Volume& volume = pod.volumes[i];
    if (!volume.size_limit || volume.size_limit->sign() <= 0) continue;
    const auto measured =
        std::find_if(disk.volumes.begin(), disk.volumes.end(),
                     [&](const VolumeUsage& each) { return each.name == volume.name; });
    if (measured == disk.volumes.end() || !measured->usage.used) continue;
    const std::int64_t allowed = volume.size_limit->value();
    if (measured->usage.used->count > allowed)
      return Excess{StorageLimit::kEmptyDir, i, allowed, measured->usage.used->count};
  }
  return std::nullopt;
}

std::optional<Excess> over_pod_limit(const PodReading& reading) {
  if (!reading.storage_limit) return std::nullopt;
  std::int64_t used = 0;
  for (const ContainerUsage& container : reading.disk->containers)
    used += used_bytes(container.rootfs) + used_bytes(container.logs);
  for (const VolumeUsage& volume : reading.disk->volumes)
    if (volume.counted) used += used_bytes(volume.usage);
  if (used <= reading.storage_limit->count) return std::nullopt;
  return Excess{StorageLimit::kPod, 0, reading.storage_limit->count, used};
}

// Its limit and what it uses, if that is more.
std::optional<Excess> excess_of_container(const Container& container, const DiskUsage& disk,
                                          ImageStorage images) {
  const auto limit = container.limits.find(kStorage);
  if (limit == container.limits.end() || limit->second.sign() <= 0) return std::nullopt;
  std::int64_t used = 0;
  for (const ContainerUsage& each : disk.containers)
    if (each.name == container.name)
      used += used_bytes(each.logs) + (images.dedicated ? 0 : used_bytes(each.rootfs));
  if (used <= limit->second.value()) return std::nullopt;
  return Excess{StorageLimit::kContainer, 0, limit->second.value(), used};
}

// Sidecars run beside the regular containers, and have limits like them (kubernetes/kubernetes
// 138462); ordinary init containers have ended by then.
std::optional<Excess> over_container_limit(const Pod& pod, const DiskUsage& disk,
                                           ImageStorage images) {
  const auto regular = static_cast<std::uint32_t>(pod.containers.size());
  const auto init = static_cast<std::uint32_t>(pod.init_containers.size());
  for (std::uint32_t i = 0; i < regular + init; ++i) {
    const bool is_regular = i < regular;
    const Container& container = is_regular ? pod.containers[i] : pod.init_containers[i - regular];
    if (!is_regular && !container.sidecar) continue;
    if (auto excess = excess_of_container(container, disk, images)) {
      excess->subject = i;
      return excess;
    }
  }
  return std::nullopt;
}

std::optional<Excess> excess_of(const PodReading& reading, ImageStorage images) {
  if (auto volume = over_size_limit(*reading.pod, *reading.disk)) return volume;
  if (auto pod = over_pod_limit(reading)) return pod;
  return over_container_limit(*reading.pod, *reading.disk, images);
}

bool may_be_evicted(const PodReading& reading, const History& history, Instant at) {
  return !reading.critical && !is_excluded(history, reading, at) &&
         !(reading.record && reading.record->populated == 0);
}

Reason reason_of(const Excess& excess, const DiskUsage& disk) {
  Reason reason;
  reason.signal = Signal::kNodeFsAvailable;
  reason.threshold = excess.allowed;
  reason.sampled_at = disk.at;
  reason.first_crossed = disk.at;
  reason.limit = excess.limit;
  reason.subject = excess.subject;
  reason.used = excess.used;
  return reason;
}

}  // namespace

bool enforce_storage_limits(const Policy& policy, const Snapshot& snapshot, Verdict& verdict) {
  if (!policy.local_storage_isolation) return false;
  bool decided = false;
  for (const PodReading& reading : snapshot.pods) {
    if (reading.storage_is_unlimited || !reading.disk) continue;
    const auto excess = excess_of(reading, snapshot.images);
    if (!excess || !may_be_evicted(reading, verdict.after, snapshot.at)) continue;
    Decision decision = make_eviction(policy, snapshot, reading, reason_of(*excess, *reading.disk));
    decision.rank_info.candidates = 1;
    decision.rank_info.usage = excess->used;
    decision.rank_info.request = excess->allowed;
    verdict.decisions.push_back(std::move(decision));
    decided = true;
  }
  return decided;
}

}  // namespace headroom::judge_eviction
