// SPDX-License-Identifier: Apache-2.0
#include "judge/limits/pod_swap_plan.h"

#include "judge/resources/pod_resources.h"

namespace headroom::judge_limits {
namespace {

// The kernel rounds down to its page, which is at most 64 KiB on amd64 and arm64.
constexpr std::int64_t kPage = 65536;

// As ranking does on a node with swap: not memory_and_swap(), which has the page cache as well.
// Absent: unknown.
std::optional<std::int64_t> held_against_request(const hr_record& record) {
  const auto held = working_set(record);
  const auto swapped = swapped_out(record);
  if (!held || !swapped) return std::nullopt;
  return held->count + swapped->count;
}

// Unknown usage changes nothing.
bool is_over_request(const PodReading& pod, bool is_limited) {
  const auto held = held_against_request(*pod.record);
  if (!held) return is_limited;
  const std::int64_t request = pod.memory_request.count;
  return *held > (is_limited ? request - request / 8 : request);
}

std::optional<Bytes> swap_high(float share, std::int64_t swap_total) {
  const double bytes = static_cast<double>(share) * static_cast<double>(swap_total);
  const std::int64_t high = static_cast<std::int64_t>(bytes) / kPage * kPage;
  return high > 0 ? std::optional(Bytes{high}) : std::nullopt;
}

}  // namespace

bool is_protected(const PodSwapPolicy& policy, const PodReading& pod) {
  if (pod.critical || qos_class(*pod.pod) == QosClass::kGuaranteed) return true;
  return policy.protected_priority && pod.pod->priority >= *policy.protected_priority;
}

PodSwapPlan plan_pod_swap(const PodSwapPolicy& policy, const PodReading& pod,
                          std::optional<std::int64_t> swap_total, bool is_limited) {
  const bool runs = pod.record && pod.record->populated != 0;
  if (!runs || !swap_total || pod.description != PodDescription::kComplete) return {};
  if (is_protected(policy, pod)) return {.keep_in_zswap = !policy.zswap_writeback};
  if (!policy.high || !is_over_request(pod, is_limited)) return {};
  return {.high = swap_high(*policy.high, *swap_total)};
}

}  // namespace headroom::judge_limits
