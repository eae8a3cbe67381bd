// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/pod_sizing.h"

#include "judge/allocatable/setting_error.h"
#include "judge/resources/go_duration.h"

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
  // Written so that NaN, which compares with nothing, is refused as well.
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
  // Zero and less: as many as the node has.
  if (configured.pids_limit > 0) sizing.pids_limit = Tasks{configured.pids_limit};
  if (auto errors = parser.take_errors(); !errors.empty())
    return tl::make_unexpected(std::move(errors));
  return sizing;
}

}  // namespace headroom
