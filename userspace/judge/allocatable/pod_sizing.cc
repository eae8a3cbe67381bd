// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/pod_sizing.h"

#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/resources/go_duration.h"
#include "judge/resources/pod_resources.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

namespace headroom {
namespace {

constexpr Bytes kPage{4096};  // the smallest: a caller rounds down to its kernel's

}  // namespace

void protect_pod_memory(CgroupValues& values, QosClass qos, Bytes request,
                        const MemoryQos& policy) {
  if (policy.reservation != MemoryQos::Reservation::kTiered || request <= Bytes{0}) return;
  (qos == QosClass::kGuaranteed ? values.memory_min : values.memory_low) = request;
}

void protect_container_memory(CgroupValues& values, QosClass qos, Bytes request,
                              const MemoryQos& policy) {
  using enum MemoryQos::Reservation;
  if (policy.reservation == kNone || (policy.reservation == kTiered && request <= Bytes{0}))
    values.memory_min = values.memory_low = Bytes{0};
  else
    protect_pod_memory(values, qos, request, policy);
}

std::optional<Bytes> memory_high(Bytes request, std::optional<Bytes> limit, Bytes allocatable,
                                 double factor) {
  if (limit && *limit == request) return std::nullopt;
  const auto from = static_cast<double>(request.count);
  const auto to = static_cast<double>((limit ? *limit : allocatable).count);
  const double pages = std::floor((from + (to - from) * factor) / static_cast<double>(kPage.count));
  const Bytes high{static_cast<std::int64_t>(pages) * kPage.count};
  if (high <= request) return std::nullopt;
  return high;
}

namespace {

constexpr std::string_view kTieredReservation = "TieredReservation";
constexpr std::string_view kLimitedSwap = "LimitedSwap";
constexpr std::string_view kNoSwap = "NoSwap";

std::string written(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

class PodSizingParser {
 public:
  explicit PodSizingParser(const PodSizingConfig& configured) : configured_(configured) {}

  Microseconds period() {
    using namespace std::chrono_literals;
    const std::string named =
        "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) " + format_go_duration(configured_.cpu_period);
    if (!configured_.custom_period_gate && configured_.cpu_period != 100ms)
      add_error("cpuCFSQuotaPeriod", named + " requires feature gate CustomCPUCFSQuotaPeriod");
    else if (configured_.cpu_period < 1ms || configured_.cpu_period > 1s)
      add_error("cpuCFSQuotaPeriod", named + " must be between 1ms and 1sec, inclusive");
    return std::chrono::duration_cast<Microseconds>(configured_.cpu_period);
  }

  MemoryQos memory_qos() {
    check_factor();
    const auto reservation = reservation_policy();
    if (configured_.memory_qos_gate == false) return {};
    return {.reservation = reservation, .throttling_factor = configured_.throttling_factor};
  }

  SwapBehavior swap() {
    if (configured_.swap_behavior == kLimitedSwap) return SwapBehavior::kLimitedSwap;
    if (!configured_.swap_behavior.empty() && configured_.swap_behavior != kNoSwap)
      add_error("memorySwap.swapBehavior",
                "memorySwap.swapBehavior " + double_quoted(configured_.swap_behavior) +
                    " must be one of: \"\", " + double_quoted(kLimitedSwap) + " or " +
                    double_quoted(kNoSwap));
    return SwapBehavior::kNoSwap;
  }

  std::vector<SettingError> take_errors() { return std::move(errors_); }

 private:
  // The comparison also refuses NaN.
  void check_factor() {
    if (!configured_.throttling_factor) return;
    const double factor = *configured_.throttling_factor;
    if (factor > 0 && factor <= 1) return;
    add_error("memoryThrottlingFactor",
              "memoryThrottlingFactor " + written(factor) +
                  " must be greater than 0 and less than or equal to 1.0");
  }

  MemoryQos::Reservation reservation_policy() {
    using enum MemoryQos::Reservation;
    const std::string& policy = configured_.reservation_policy;
    if (policy.empty()) return configured_.memory_qos_gate == true ? kNone : kUnmanaged;
    if (policy == "None") return kNone;
    if (policy != kTieredReservation)
      add_error("memoryReservationPolicy",
                "option " + double_quoted(policy) +
                    " specified for memoryReservationPolicy. Valid options are \"None\" or " +
                    double_quoted(kTieredReservation));
    return kTiered;
  }

  void add_error(std::string field, const std::string& what) {
    errors_.push_back({std::move(field), "", "invalid configuration: " + what});
  }

  const PodSizingConfig& configured_;
  std::vector<SettingError> errors_;
};

}  // namespace

tl::expected<PodSizing, std::vector<SettingError>> pod_sizing(const PodSizingConfig& configured,
                                                              WeightFormula weights) {
  PodSizingParser parser(configured);
  PodSizing sizing{.weights = weights,
                   .cpu_quota = configured.cpu_quota,
                   .cpu_period = parser.period(),
                   .memory_qos = parser.memory_qos(),
                   .swap = parser.swap(),
                   .oom_kills_group = !configured.single_process_oom_kill};
  // Zero or less: unlimited.
  if (configured.pids_limit > 0) sizing.pids_limit = Tasks{configured.pids_limit};
  if (auto errors = parser.take_errors(); !errors.empty())
    return tl::make_unexpected(std::move(errors));
  return sizing;
}

namespace {

__extension__ using Wide = __int128;  // bytes × bytes

// Null: not set, or zero, which means the same.
const Quantity* named(const ResourceList& list, std::string_view resource) {
  const auto entry = list.find(resource);
  return entry == list.end() || entry->second.sign() <= 0 ? nullptr : &entry->second;
}

MilliCpu milli_cpu(const Quantity* quantity) {
  return MilliCpu{quantity ? quantity->milli_value() : 0};
}
Bytes bytes(const Quantity* quantity) {
  return Bytes{quantity ? quantity->value() : 0};
}

// Does every container declare a limit of its own, or the pod as a whole? Upstream judges an init
// container together with the sidecars before it, and so takes one without a limit for limited: the
// pod then gets a limit although one of its containers has none. Not copied (kubelet:
// cm/helpers_linux.go).
bool all_limited(const Pod& pod, std::string_view resource) {
  if (pod.pod_level && named(pod.pod_level->limits, resource)) return true;
  const auto limited = [&](const Container& each) { return named(each.limits, resource); };
  return std::all_of(pod.init_containers.begin(), pod.init_containers.end(), limited) &&
         std::all_of(pod.containers.begin(), pod.containers.end(), limited);
}

// The limit of the pod as a whole. Null: none.
const Quantity* pod_limit(const Pod& pod, QosClass qos, const ResourceList& limits,
                          std::string_view resource) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return named(limits, resource);
    case QosClass::kBurstable:
      return all_limited(pod, resource) ? named(limits, resource) : nullptr;
    case QosClass::kBestEffort:
      return nullptr;
  }
  return nullptr;
}

// Absent without a limit: then nothing is written.
std::optional<CpuMax> cpu_max(const Quantity* limit, const PodSizing& sizing, Cpus cpus) {
  if (!limit) return std::nullopt;
  CpuMax max{.period = sizing.cpu_period};
  const bool throttled = sizing.cpu_quota && cpus == Cpus::kShared;
  if (const auto quota = directory_quota(milli_cpu(limit), sizing.cpu_period); throttled && quota)
    max.quota = *quota;
  return max;
}

std::map<Bytes, Limit<Bytes>> hugetlb(const ResourceList& list, const NodeMemory& node) {
  std::map<Bytes, Limit<Bytes>> limits;
  for (const auto& [size, amount] : huge_pages_in(list))
    limits.emplace(size, amount);
  for (const Bytes size : node.huge_page_sizes)
    limits.try_emplace(size, Bytes{0});
  return limits;
}

// A container without its own limit has the pod's (1.34).
const Quantity* effective_limit(const Pod& pod, const Container& container,
                                std::string_view resource) {
  if (const auto* own = named(container.limits, resource)) return own;
  return pod.pod_level ? named(pod.pod_level->limits, resource) : nullptr;
}

// The effective limits of every resource.
ResourceList effective_limits(const Pod& pod, const Container& container) {
  ResourceList limits = container.limits;
  if (pod.pod_level) limits.insert(pod.pod_level->limits.begin(), pod.pod_level->limits.end());
  return limits;
}

// A limit without a request counts as the request, as in the API server.
const Quantity* cpu_request(const Pod& pod, const Container& container) {
  if (container.requests.contains("cpu")) return named(container.requests, "cpu");
  return effective_limit(pod, container, "cpu");
}

// The lower of podPidsLimit and the pod's own spec.resources.limits.pid (enhancements 6063, 1.37).
std::optional<Limit<Tasks>> pids_max(const Pod& pod, const PodSizing& sizing) {
  std::optional<Tasks> most = sizing.pids_limit;
  if (const auto* own = pod.pod_level ? named(pod.pod_level->limits, "pid") : nullptr) {
    const Tasks limit{own->value()};
    most = most ? std::min(*most, limit) : limit;
  }
  if (!most) return std::nullopt;
  return *most;
}

}  // namespace

CgroupValues pod_cgroup(const Pod& pod, const PodSizing& sizing, const NodeMemory& node,
                        Cpus cpus) {
  const QosClass qos = qos_class(pod);
  const ResourceList requests = pod_requests(pod);
  const ResourceList limits = pod_limits(pod);

  CgroupValues values;
  // BestEffort stays at the bottom even when its overhead names CPU.
  const MilliCpu cpu = milli_cpu(qos == QosClass::kBestEffort ? nullptr : named(requests, "cpu"));
  values.cpu_weight = weight_of(shares_of(cpu), sizing.weights);
  values.cpu_max = cpu_max(pod_limit(pod, qos, limits, "cpu"), sizing, cpus);
  if (const auto* memory = pod_limit(pod, qos, limits, "memory")) values.memory_max = bytes(memory);
  values.pids_max = pids_max(pod, sizing);
  values.hugetlb_max = hugetlb(requests, node);
  protect_pod_memory(values, qos, bytes(named(requests, "memory")), sizing.memory_qos);
  return values;
}

CgroupValues container_cgroup(const Pod& pod, const Container& container, const PodSizing& sizing,
                              const NodeMemory& node, Cpus cpus) {
  const Bytes request = bytes(named(container.requests, "memory"));
  const auto* limit = effective_limit(pod, container, "memory");

  CgroupValues values;
  values.cpu_weight = weight_of(shares_of(milli_cpu(cpu_request(pod, container))), sizing.weights);
  values.cpu_max = cpu_max(effective_limit(pod, container, "cpu"), sizing, cpus);
  if (limit) values.memory_max = bytes(limit);
  protect_container_memory(values, qos_class(pod), request, sizing.memory_qos);
  // There is no range between a request and a limit that are equal, or both unset.
  const bool between = request != bytes(named(container.limits, "memory"));
  if (const auto factor = sizing.memory_qos.throttling_factor; factor && between) {
    const auto ceiling = limit ? std::optional(bytes(limit)) : std::nullopt;
    if (const auto high = memory_high(request, ceiling, node.allocatable, *factor)) {
      const Bytes whole_pages{high->count / node.page.count * node.page.count};
      if (whole_pages > request) values.memory_high = whole_pages;
    }
  }
  if (sizing.swap)
    values.memory_swap_max =
        *sizing.swap == SwapBehavior::kLimitedSwap ? swap_share(pod, container, node) : Bytes{0};
  if (sizing.oom_kills_group) values.memory_oom_group = true;
  values.hugetlb_max = hugetlb(effective_limits(pod, container), node);
  return values;
}

Bytes swap_share(const Pod& pod, const Container& container, const NodeMemory& node) {
  if (is_critical(pod) || qos_class(pod) != QosClass::kBurstable) return Bytes{0};
  const Bytes request = bytes(named(container.requests, "memory"));
  if (request == bytes(named(container.limits, "memory"))) return Bytes{0};
  // A request beyond the node's memory would make a share beyond its swap.
  if (node.capacity <= Bytes{0} || request > node.capacity) return Bytes{0};
  return Bytes{
      static_cast<std::int64_t>(Wide{request.count} * node.swap.count / node.capacity.count)};
}

}  // namespace headroom
