// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/pod_registry.h"

#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

namespace headroom::observe {
namespace {

bool same(const Container& a, const Container& b) {
  return std::tie(a.name, a.requests, a.limits, a.sidecar, a.pre_stop) ==
         std::tie(b.name, b.requests, b.limits, b.sidecar, b.pre_stop);
}

bool same(const std::vector<Container>& a, const std::vector<Container>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Container& x, const Container& y) { return same(x, y); });
}

bool same(const std::optional<Container>& a, const std::optional<Container>& b) {
  return a && b ? same(*a, *b) : a.has_value() == b.has_value();
}

bool same(const Pod& a, const Pod& b) {
  const auto plain = [](const Pod& pod) {
    return std::tie(pod.uid, pod.name, pod.pod_namespace, pod.source, pod.priority,
                    pod.priority_class, pod.is_static, pod.declared_qos, pod.termination_grace,
                    pod.overhead, pod.labels, pod.annotations, pod.placement, pod.volumes,
                    pod.rootfs_path, pod.logs_path, pod.ignored_fields);
  };
  return plain(a) == plain(b) && same(a.init_containers, b.init_containers) &&
         same(a.containers, b.containers) && same(a.pod_level, b.pod_level);
}

// A protection of "max" asks for all there is.
Quantity bytes(hr_u64 count) {
  constexpr auto kMax = static_cast<hr_u64>(std::numeric_limits<std::int64_t>::max());
  return Quantity::of(static_cast<std::int64_t>(std::min(count, kMax)),
                      Quantity::Format::kBinarySI);
}

bool is_set(hr_u64 count) {
  return count != HR_UNKNOWN && count != 0;
}

}  // namespace

// memory.min is the stronger promise, so it is the request where there is one; the kubelet writes
// either (memoryReservationPolicy: TieredReservation), or none. Of a Guaranteed pod the request is
// the limit, by the definition of the class.
Pod PodRegistry::pod_of(const Tree& tree) {
  Pod pod;
  pod.uid = tree.uid;
  pod.name = "pod" + tree.uid;
  pod.pod_namespace.clear();  // not known
  pod.source = PodSource::kCgroupTree;
  pod.declared_qos = tree.qos;
  // The kubelet gives static pods a uid without dashes, the API server gives all others a UUID: so
  // a control plane pod without a manifest is still not evicted.
  pod.is_static = is_static_uid(tree.uid);

  Container whole;
  if (is_set(tree.memory_min))
    whole.requests.emplace("memory", bytes(tree.memory_min));
  else if (is_set(tree.memory_low))
    whole.requests.emplace("memory", bytes(tree.memory_low));
  if (tree.memory_max != HR_UNKNOWN && tree.memory_max != HR_NO_LIMIT)
    whole.limits.emplace("memory", bytes(tree.memory_max));
  if (tree.qos == QosClass::kGuaranteed)
    whole.requests.insert(whole.limits.begin(), whole.limits.end());
  if (!whole.requests.empty() || !whole.limits.empty()) pod.pod_level = std::move(whole);
  return pod;
}

void PodRegistry::settle_description(std::size_t index) {
  PodReading& reading = readings_[index];
  const Tree& tree = trees_[index];
  if (!kubelet_describes_ || reading.pod->source != PodSource::kCgroupTree)
    reading.description = PodDescription::kComplete;
  else if (tree.qos == QosClass::kGuaranteed || tree.is_protected)
    reading.description = PodDescription::kAwaitedProtected;
  else
    reading.description = PodDescription::kAwaited;
}

void PodRegistry::show_protected(CgroupId id, bool is_protected) {
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  trees_[found->second].is_protected = is_protected;
  settle_description(found->second);
}

void PodRegistry::assign_pod(std::size_t index, std::shared_ptr<const Pod> pod) {
  PodReading& reading = readings_[index];
  if (reading.pod == pod) return;
  reading.memory_request = Bytes{eviction_request(*pod, "memory").value()};
  reading.storage_request = Bytes{eviction_request(*pod, "ephemeral-storage").value()};
  const ResourceList limits = pod_limits(*pod);
  const auto storage = limits.find("ephemeral-storage");
  reading.storage_limit.reset();
  if (storage != limits.end()) reading.storage_limit = Bytes{storage->second.value()};
  // A container's limit is part of the pod's.
  reading.storage_is_unlimited =
      !reading.storage_limit &&
      std::none_of(pod->volumes.begin(), pod->volumes.end(),
                   [](const Volume& volume) { return volume.size_limit.has_value(); });
  reading.critical = is_critical(*pod);
  reading.unit.reset();
  if (const auto unit = pod->annotations.find(kEvictionUnitAnnotation);
      unit != pod->annotations.end())
    reading.unit = eviction_unit_named(unit->second);
  reading.pod = std::move(pod);
  settle_description(index);
}

std::shared_ptr<const Pod> PodRegistry::with_manifest(std::string_view uid) const {
  const auto found = manifests_.find(uid);
  return found == manifests_.end() ? nullptr : found->second;
}

void PodRegistry::set_declared_pods(std::vector<Pod> manifests,
                                    const std::set<std::string>& of_kubelet,
                                    bool kubelet_describes) {
  decltype(manifests_) now;
  for (Pod& pod : manifests) {
    auto before = with_manifest(pod.uid);
    const bool kept = before && same(*before, pod);
    std::string uid = pod.uid;
    now.try_emplace(std::move(uid),
                    kept ? std::move(before) : std::make_shared<const Pod>(std::move(pod)));
  }
  manifests_ = std::move(now);
  of_kubelet_ = of_kubelet;
  kubelet_describes_ = kubelet_describes;

  for (std::size_t i = 0; i < readings_.size(); ++i) {
    settle_description(i);
    auto pod = with_manifest(trees_[i].uid);
    const bool no_manifest = readings_[i].pod->source == PodSource::kCgroupTree;
    if (!pod && (no_manifest || trees_[i].of_kubelet)) continue;
    trees_[i].of_kubelet = of_kubelet_.contains(trees_[i].uid);
    assign_pod(i, pod ? std::move(pod) : std::make_shared<const Pod>(pod_of(trees_[i])));
  }
}

void PodRegistry::count_cgroup(Tree& tree) {
  tree.cgroups = &cgroups_[tree.uid];
  several_ += ++tree.cgroups->count == 2;
}

void PodRegistry::forget_cgroup(const Tree& tree) {
  several_ -= tree.cgroups->count == 2;
  if (--tree.cgroups->count == 0) cgroups_.erase(tree.uid);
}

std::span<const PodReading> PodRegistry::shown() {
  if (several_ == 0) return readings_;
  for (const Tree& tree : trees_)
    *tree.cgroups = {.count = tree.cgroups->count, .oldest = {UINT64_MAX}, .populated = false};
  // A cgroup that cannot be read is not known to be empty.
  const auto populated = [](const PodReading& reading) {
    return !reading.record || reading.record->populated != 0;
  };
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    Cgroups& cgroups = *trees_[i].cgroups;
    cgroups.populated |= populated(readings_[i]);
    cgroups.oldest.value = std::min(cgroups.oldest.value, readings_[i].cgroup.value);
  }
  shown_.clear();
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const Cgroups& cgroups = *trees_[i].cgroups;
    if (cgroups.populated ? populated(readings_[i]) : readings_[i].cgroup == cgroups.oldest)
      shown_.push_back(readings_[i]);
  }
  return shown_;
}

bool PodRegistry::add_cgroup(CgroupId id, std::string_view path) {
  auto place = layout_.place(path);
  if (!place || place->level != PodCgroupPath::Level::kPod) return false;
  // An id is never reused: an id seen before is the same cgroup, reported twice.
  if (!index_.try_emplace(id, readings_.size()).second) return true;

  trees_.push_back({.uid = std::move(place->uid), .qos = place->qos, .disk = nullptr});
  count_cgroup(trees_.back());
  PodReading reading;
  reading.cgroup = id;
  readings_.push_back(std::move(reading));
  auto pod = with_manifest(trees_.back().uid);
  trees_.back().of_kubelet = of_kubelet_.contains(trees_.back().uid);
  assign_pod(readings_.size() - 1,
             pod ? std::move(pod) : std::make_shared<const Pod>(pod_of(trees_.back())));
  return true;
}

void PodRegistry::gone(CgroupId id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  const std::size_t index = found->second;
  index_.erase(found);
  forget_cgroup(trees_[index]);
  if (index + 1 != readings_.size()) {
    readings_[index] = std::move(readings_.back());
    trees_[index] = std::move(trees_.back());
    index_[readings_[index].cgroup] = index;
  }
  readings_.pop_back();
  trees_.pop_back();
}

void PodRegistry::measured(CgroupId id, std::shared_ptr<const DiskUsage> usage) {
  const auto found = index_.find(id);
  if (found == index_.end()) return;
  readings_[found->second].disk = usage.get();
  ++readings_[found->second].measured;
  trees_[found->second].disk = std::move(usage);
}

void PodRegistry::set_parts(CgroupId id, const PodParts* parts) {
  const auto found = index_.find(id);
  if (found != index_.end()) readings_[found->second].parts = parts;
}

// Limits that cannot be read now are still what they were.
void PodRegistry::update_limits(std::size_t index, const hr_record& record) {
  if (!(record.valid & HR_MEMORY_LIMITS)) return;
  Tree& tree = trees_[index];
  const bool news = tree.memory_min != record.memory_min || tree.memory_low != record.memory_low ||
                    tree.memory_max != record.memory_max;
  if (!news) return;
  tree.memory_min = record.memory_min;
  tree.memory_low = record.memory_low;
  tree.memory_max = record.memory_max;
  if (readings_[index].pod->source != PodSource::kCgroupTree) return;
  Pod pod = pod_of(tree);
  if (!same(*readings_[index].pod, pod))
    assign_pod(index, std::make_shared<const Pod>(std::move(pod)));
}

PodRegistry::ManifestCounts PodRegistry::manifest_counts() const {
  ManifestCounts manifest_counts;
  std::set<std::string_view> placed;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    if (!placed.insert(trees_[i].uid).second) continue;
    const bool told = readings_[i].pod->source == PodSource::kManifest;
    ++(told ? manifest_counts.with_manifest : manifest_counts.without_manifest);
  }
  for (const auto& [uid, pod] : manifests_)
    if (!placed.contains(uid)) ++manifest_counts.without_cgroup;
  return manifest_counts;
}

}  // namespace headroom::observe
