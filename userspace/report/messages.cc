// SPDX-License-Identifier: Apache-2.0
#include "report/messages.h"

#include "report/human.h"

#include <cstring>

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

// The kubelet compares containers' memory and ephemeral-storage with their requests, nothing else.
bool lists_containers(Signal signal) {
  return resource_of(signal) == "memory" || resource_of(signal) == "ephemeral-storage";
}

std::string why(const Reason& reason) {
  if (reason.cause == Cause::kTaint)
    return fmt::format("the node is tainted {}", to_string(*reason.taint));
  return fmt::format("{} {}, below its {} threshold of {}", name(reason.signal),
                     human_amount(reason.signal, reason.available), reason.hard ? "hard" : "soft",
                     human_amount(reason.signal, reason.threshold));
}

// "default/hog (BestEffort, 1.2Gi over its request of 0)"
std::string who(const Decision& decision, std::string_view qos) {
  const std::string over =
      over_request(decision.standing.working_set, decision.standing.memory_request);
  return fmt::format("{} ({}{}{})", pod_name(*decision.pod), qos, qos.empty() ? "" : ", ", over);
}

std::string done_line(const Decision& decision, const std::string& pod) {
  switch (decision.act) {
    case Act::kTerminate:
      return fmt::format("asked {} to end, SIGKILL in {}: {}", pod,
                         human(decision.deadline - decision.decided_at), why(decision.reason));
    case Act::kKill:
      return fmt::format("killed {}: {}", pod, why(decision.reason));
  }
  return "";
}

std::string elapsed(const Eviction& eviction) {
  return eviction.signalled_at == Instant{} ? "an unknown time"
                                            : human(eviction.ended_at - eviction.signalled_at);
}

}  // namespace

std::string pod_message(Signal signal, std::optional<Quantity> threshold,
                        std::optional<Quantity> available, std::span<const ContainerUse> uses) {
  const std::string_view resource = resource_of(signal);
  std::string text = fmt::format("The node was low on resource: {}. ", resource);
  if (threshold && available)
    text += fmt::format("Threshold quantity: {}, available: {}. ", threshold->canonical(),
                        available->canonical());
  if (!lists_containers(signal)) return text;
  for (const ContainerUse& use : uses)
    if (use.usage > use.request)
      text +=
          fmt::format("Container {} was using {}, request is {}, has larger consumption of {}. ",
                      use.container, use.usage.canonical(), use.request.canonical(), resource);
  return text;
}

Quantity quantity_of(Signal signal, std::int64_t amount) {
  return Quantity::of(
      amount, counts_bytes(signal) ? Quantity::Format::kBinarySI : Quantity::Format::kDecimalSI);
}

std::string_view condition_reason(Condition condition, bool now) {
  switch (condition) {
    case Condition::kMemoryPressure:
      return now ? "NodeHasInsufficientMemory" : "NodeHasSufficientMemory";
    case Condition::kDiskPressure:
      return now ? "NodeHasDiskPressure" : "NodeHasNoDiskPressure";
    case Condition::kPidPressure:
      return now ? "NodeHasInsufficientPID" : "NodeHasSufficientPID";
  }
  return "";
}

std::string pod_name(const Pod& pod) {
  return pod.pod_namespace + "/" + pod.name;
}

std::string over_request(std::optional<Bytes> working_set, Bytes request) {
  if (!working_set) return fmt::format("usage unknown, request {}", human(request));
  const Bytes over = *working_set - request;
  if (over.count >= 0) return fmt::format("{} over its request of {}", human(over), human(request));
  return fmt::format("{} under its request of {}", human(Bytes{-over.count}), human(request));
}

std::string threshold_line(Signal signal, bool hard, std::int64_t limit, std::int64_t available) {
  Reason reason;
  reason.signal = signal;
  reason.hard = hard;
  reason.threshold = limit;
  reason.available = available;
  return fmt::format("{}: Attempting to reclaim {}: {}", kThresholdMet, resource_of(signal),
                     why(reason));
}

std::string condition_line(Condition condition, bool now) {
  return fmt::format("{}: {} is now {}", condition_reason(condition, now), name(condition), now);
}

std::string outcome_line(const Outcome& outcome, std::string_view qos) {
  const std::string pod = who(outcome.decision, qos);
  switch (outcome.result) {
    case Outcome::Result::kDone:
      return done_line(outcome.decision, pod);
    case Outcome::Result::kGone:
      return fmt::format("{} was gone before it could be evicted", pod);
    case Outcome::Result::kFailed:
      return fmt::format("could not evict {}: {}", pod, std::strerror(outcome.error));
    case Outcome::Result::kPretended:
      return fmt::format("would evict {}: {}", pod, why(outcome.decision.reason));
  }
  return "";
}

std::string ending_line(const Eviction& eviction) {
  const std::string pod = pod_name(*eviction.decision.pod);
  const std::string returned =
      eviction.memory_returned ? human(*eviction.memory_returned) : "an unknown amount";
  if (eviction.ending == Ending::kOutlasting)
    return fmt::format("{} still has processes {} after its signal, {} returned", pod,
                       elapsed(eviction), returned);
  return fmt::format("evicted {}: gone {} after its signal, {} returned", pod, elapsed(eviction),
                     returned);
}

std::string candidate_line(std::size_t place, const Ranked& candidate, std::string_view qos) {
  return fmt::format("{}. {}: {}{}priority {}, {}: {}", place, pod_name(*candidate.pod), qos,
                     qos.empty() ? "" : ", ", candidate.priority,
                     over_request(candidate.working_set, candidate.memory_request),
                     name(candidate.fate));
}

}  // namespace headroom::report
