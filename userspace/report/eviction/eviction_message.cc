// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/eviction_message.h"

#include "base/human_readable.h"
#include "report/eviction/messages.h"
#include "report/view/pod_index.h"

#include <variant>
#include <vector>

namespace headroom::report {
namespace {

// The threshold as configured ("1G" stays "1G") if it is still in the policy; a percentage is
// printed as the resolved amount, as the kubelet does.
Quantity threshold_quantity(const Reason& reason, const Policy& policy) {
  for (const Threshold& threshold : policy.thresholds) {
    const auto* configured = std::get_if<Quantity>(&threshold.value);
    if (threshold.signal == reason.signal && threshold.hard() == reason.hard && configured &&
        configured->value() == reason.threshold)
      return *configured;
  }
  return quantity_of(reason.signal, reason.threshold);
}

Quantity request_of(const Container& container, std::string_view resource) {
  const auto request = container.requests.find(resource);
  return request == container.requests.end() ? Quantity{} : request->second;
}

std::vector<ContainerUse> memory_uses(const Decision& decision, const Snapshot& snapshot,
                                      const CgroupNames* names) {
  std::vector<ContainerUse> uses;
  if (!names || !snapshot.cgroups || !wants_memory(decision.reason.signal)) return uses;
  for (const hr_record& record : *snapshot.cgroups) {
    if (record.parent_id != decision.cgroup.value) continue;
    const Container* container =
        container_named(*decision.pod, names->path_of(CgroupId{record.id}));
    const auto used = working_set(record);
    if (container && used)
      uses.push_back({container->name, quantity_of(Signal::kMemoryAvailable, used->count),
                      request_of(*container, "memory")});
  }
  return uses;
}

const DiskUsage* disk_of(const Decision& decision, const Snapshot& snapshot) {
  for (const PodReading& reading : snapshot.pods)
    if (reading.cgroup == decision.cgroup) return reading.disk;
  return nullptr;
}

// Writable layer and logs of each container, as the kubelet compares them: volumes belong to the
// pod.
std::vector<ContainerUse> storage_uses(const Decision& decision, const Snapshot& snapshot) {
  std::vector<ContainerUse> uses;
  const DiskUsage* disk = disk_of(decision, snapshot);
  if (!disk) return uses;
  const auto list = [&](const std::vector<Container>& containers) {
    const auto known = [](const FsUsage& part) { return part.used ? part.used->count : 0; };
    for (const Container& container : containers) {
      std::int64_t used = 0;
      for (const ContainerUsage& usage : disk->containers)
        if (usage.name == container.name) used += known(usage.rootfs) + known(usage.logs);
      uses.push_back({container.name, quantity_of(decision.reason.signal, used),
                      request_of(container, "ephemeral-storage")});
    }
  };
  list(decision.pod->containers);
  list(decision.pod->init_containers);
  return uses;
}

}  // namespace

std::string eviction_message(const Decision& decision, const Policy& policy,
                             const Snapshot& snapshot, const CgroupNames* names) {
  const Reason& reason = decision.reason;
  if (reason.cause == Cause::kTaint)
    return "The node has a taint that the pod does not tolerate, or no longer: " +
           to_string(*reason.taint) + ". ";
  if (reason.cause == Cause::kStuck)
    return "The pod is stuck at a memory.high of its own, " + human_bytes(reason.threshold) +
           ", and gets nowhere. ";
  if (reason.limit != StorageLimit::kNone) return limit_message(reason, *decision.pod);
  const bool of_storage = resource_of(reason.signal) == "ephemeral-storage";
  const auto uses =
      of_storage ? storage_uses(decision, snapshot) : memory_uses(decision, snapshot, names);
  return pod_message(reason.signal, threshold_quantity(reason, policy),
                     quantity_of(reason.signal, reason.available), uses);
}

}  // namespace headroom::report
