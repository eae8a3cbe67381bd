// SPDX-License-Identifier: Apache-2.0
#include "report/eviction_message.h"

#include "report/identity.h"
#include "report/messages.h"

#include <variant>
#include <vector>

namespace headroom::report {
namespace {

// As configured ("1G" stays "1G") where the threshold still is; a percentage prints resolved, as
// the kubelet does.
Quantity threshold_quantity(const Reason& reason, const Policy& policy) {
  for (const Threshold& threshold : policy.thresholds) {
    const auto* configured = std::get_if<Quantity>(&threshold.value);
    if (threshold.signal == reason.signal && threshold.hard() == reason.hard && configured &&
        configured->value() == reason.threshold)
      return *configured;
  }
  return quantity_of(reason.signal, reason.threshold);
}

Quantity memory_request(const Container& container) {
  const auto request = container.requests.find("memory");
  return request == container.requests.end() ? Quantity{} : request->second;
}

std::vector<ContainerUse> memory_uses(const Decision& decision, const Snapshot& snapshot,
                                      const CgroupNames* names) {
  std::vector<ContainerUse> uses;
  if (!names || !snapshot.cgroups || !is_memory(decision.reason.signal)) return uses;
  for (const hr_record& record : *snapshot.cgroups) {
    if (record.parent_id != decision.cgroup.value) continue;
    const Container* container =
        container_named(*decision.pod, names->path_of(CgroupId{record.id}));
    const auto used = working_set(record);
    if (container && used)
      uses.push_back({container->name, quantity_of(decision.reason.signal, used->count),
                      memory_request(*container)});
  }
  return uses;
}

}  // namespace

std::string eviction_message(const Decision& decision, const Policy& policy,
                             const Snapshot& snapshot, const CgroupNames* names) {
  const Reason& reason = decision.reason;
  if (reason.cause == Cause::kTaint)
    return "The node has a taint that the pod does not tolerate, or no longer: " +
           to_string(*reason.taint) + ". ";
  return pod_message(reason.signal, threshold_quantity(reason, policy),
                     quantity_of(reason.signal, reason.available),
                     memory_uses(decision, snapshot, names));
}

}  // namespace headroom::report
