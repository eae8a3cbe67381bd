// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/messages.h"

#include "base/human_readable.h"

#include <cerrno>
#include <cstring>

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

// The kubelet compares containers' memory and ephemeral-storage with their requests, nothing else.
bool lists_containers(Signal signal) {
  return resource_of(signal) == "memory" || resource_of(signal) == "ephemeral-storage";
}

std::string_view count_unit(Signal signal) {
  return signal == Signal::kPidAvailable ? "tasks" : "inodes";
}

// What the limit applies to: "emptyDir cache", "container app", "the pod".
std::string limit_subject(const Reason& reason, const Pod* pod) {
  switch (reason.limit) {
    case StorageLimit::kEmptyDir:
      if (pod && reason.subject < pod->volumes.size())
        return "emptyDir " + pod->volumes[reason.subject].name;
      return "an emptyDir";
    case StorageLimit::kContainer:
      if (const Container* container = pod ? limited_container(*pod, reason) : nullptr)
        return "container " + container->name;
      return "a container";
    case StorageLimit::kPod:
    case StorageLimit::kNone:
      return "the pod";
  }
  return "";
}

// "", "a container of ", "process 4711 (java) of "
std::string part_prefix(const Part& part) {
  switch (part.unit) {
    case EvictionUnit::kPod:
      return "";
    case EvictionUnit::kContainer:
      return part.group ? "a cgroup that dies as one of " : "a container of ";
    case EvictionUnit::kProcess:
      return fmt::format("process {} ({}) of ", part.process.pid, part.comm.data());
  }
  return "";
}

// "default/hog (BestEffort, 1.2Gi over its request of 0)"
std::string pod_with_usage(const Decision& decision, std::string_view qos) {
  const RankInfo& rank_info = decision.rank_info;
  const Reason& reason = decision.reason;
  // Of a resumed eviction only the usage is known.
  const bool of_memory = wants_memory(reason.signal) || !rank_info.usage;
  std::string over;
  if (reason.limit == StorageLimit::kNone)
    over = of_memory
               ? over_request(Signal::kMemoryAvailable,
                              rank_info.working_set ? std::optional(rank_info.working_set->count)
                                                    : std::nullopt,
                              rank_info.memory_request.count)
               : over_request(reason.signal, rank_info.usage, rank_info.request);
  const bool both = !qos.empty() && !over.empty();
  const std::string pod_text = part_prefix(decision.part) + pod_name(*decision.pod);
  if (qos.empty() && over.empty()) return pod_text;
  return fmt::format("{} ({}{}{})", pod_text, qos, both ? ", " : "", over);
}

std::string done_line(const Decision& decision, const std::string& pod) {
  const std::string reason = reason_text(decision.reason, decision.pod.get());
  switch (decision.act) {
    case Act::kTerminate:
      return fmt::format("asked {} to end, SIGKILL in {}: {}", pod,
                         human(decision.deadline - decision.decided_at), reason);
    case Act::kPreStop:
      return fmt::format("running the pre-stop commands of {}, SIGKILL in {}: {}", pod,
                         human(decision.deadline - decision.decided_at), reason);
    case Act::kKill:
      return fmt::format("killed {}: {}", pod, reason);
    case Act::kRemove:
    case Act::kReclaim:
    case Act::kReclaimCache:
    case Act::kLowerMemoryHigh:
    case Act::kRaiseMemoryHigh:
    case Act::kRestoreMemoryHigh:
      break;
  }
  return "";
}

std::string error_text(int error) {
  if (error & Outcome::kExitStatus)
    return fmt::format("exit status {}", error & ~Outcome::kExitStatus);
  if (error == ETIMEDOUT) return "its time was up";
  return std::strerror(error);
}

std::string_view reclaim_targets(ReclaimSteps steps) {
  if (steps.containers && steps.images) return "dead containers and unused images";
  return steps.containers ? "dead containers" : "unused images";
}

std::string time_since_signal(const Eviction& eviction) {
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
  // The amount is in millionths and is shown in thousandths: "800m".
  if (is_share_of_time(signal)) return Quantity::of_milli(amount / 1000);
  return Quantity::of(
      amount, is_byte_signal(signal) ? Quantity::Format::kBinarySI : Quantity::Format::kDecimalSI);
}

std::string_view condition_reason(Condition condition, bool now) {
  switch (condition) {
    case Condition::kMemoryPressure:
      return now ? "NodeHasInsufficientMemory" : "NodeHasSufficientMemory";
    case Condition::kDiskPressure:
      return now ? "NodeHasDiskPressure" : "NodeHasNoDiskPressure";
    case Condition::kPidPressure:
      return now ? "NodeHasInsufficientPID" : "NodeHasSufficientPID";
    case Condition::kCpuPressure:
      return now ? "NodeHasInsufficientCPU" : "NodeHasSufficientCPU";
  }
  return "";
}

std::string pod_name(const Pod& pod) {
  return pod.pod_namespace + "/" + pod.name;
}

std::string over_request(Signal signal, std::optional<std::int64_t> usage, std::int64_t request) {
  if (signal == Signal::kCpuPressure && usage)
    return fmt::format("{} for a request of {}", human_cpus(*usage), human_cpus(request));
  if (!is_byte_signal(signal))
    return usage ? fmt::format("{} {}", *usage, count_unit(signal)) : "usage unknown";
  if (!usage) return fmt::format("usage unknown, request {}", human_bytes(request));
  const std::int64_t over = *usage - request;
  if (over >= 0)
    return fmt::format("{} over its request of {}", human_bytes(over), human_bytes(request));
  return fmt::format("{} under its request of {}", human_bytes(-over), human_bytes(request));
}

std::string reason_text(const Reason& reason, const Pod* pod) {
  if (reason.cause == Cause::kTaint)
    return fmt::format("the node is tainted {}", to_string(*reason.taint));
  if (reason.cause == Cause::kStuck)
    return fmt::format("it waits at its memory.high of {} for {}", human_bytes(reason.threshold),
                       human(reason.sampled_at - reason.first_crossed));
  if (reason.limit != StorageLimit::kNone)
    return fmt::format("{} uses {}, over its limit of {}", limit_subject(reason, pod),
                       human_bytes(reason.used), human_bytes(reason.threshold));
  return fmt::format("{} {}, below its {} threshold of {}", name(reason.signal),
                     human_amount(reason.signal, reason.available), reason.hard ? "hard" : "soft",
                     human_amount(reason.signal, reason.threshold));
}

// The limit as configured if that is known, else `limit`.
static std::string size_limit_text(const Volume& volume, const std::string& limit) {
  return volume.size_limit ? volume.size_limit->canonical() : limit;
}

std::string limit_message(const Reason& reason, const Pod& pod) {
  const std::string limit = Quantity::of(reason.threshold, Quantity::Format::kBinarySI).canonical();
  switch (reason.limit) {
    case StorageLimit::kEmptyDir:
      if (reason.subject >= pod.volumes.size()) break;
      return fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                         pod.volumes[reason.subject].name,
                         size_limit_text(pod.volumes[reason.subject], limit));
    case StorageLimit::kPod:
      return fmt::format(
          "Pod ephemeral local storage usage exceeds the total limit of containers {}. ", limit);
    case StorageLimit::kContainer:
      if (const Container* container = limited_container(pod, reason))
        return fmt::format("Container {} exceeded its local ephemeral storage limit \"{}\". ",
                           container->name, limit);
      break;
    case StorageLimit::kNone:
      break;
  }
  return "";
}

std::string reclaim_line(const Outcome& outcome) {
  const Decision& decision = outcome.decision;
  const std::string_view what = reclaim_targets(decision.steps);
  const std::string took = human(outcome.at - decision.decided_at);
  switch (outcome.result) {
    case Outcome::Result::kStarted:
      return fmt::format("reclaiming {}: {}", what, reason_text(decision.reason, nullptr));
    case Outcome::Result::kDryRun:
      return fmt::format("would reclaim {}: {}", what, reason_text(decision.reason, nullptr));
    case Outcome::Result::kDone:
      if (outcome.error == 0) return fmt::format("reclaimed {} in {}", what, took);
      return fmt::format("reclaiming {} failed after {}: {}", what, took,
                         error_text(outcome.error));
    case Outcome::Result::kFailed:
    case Outcome::Result::kGone:
      return fmt::format("could not reclaim {}: {}", what, error_text(outcome.error));
  }
  return "";
}

std::string async_action_line(const Outcome& outcome) {
  const std::string pod = pod_name(*outcome.decision.pod);
  const std::string what = outcome.decision.act == Act::kPreStop
                               ? "the pre-stop commands of " + pod
                               : "removing the emptyDirs of " + pod;
  if (outcome.result == Outcome::Result::kStarted) return what;
  if (outcome.error != 0) return fmt::format("{}: {}", what, error_text(outcome.error));
  return fmt::format("{}: done in {}", what, human(outcome.at - outcome.decision.decided_at));
}

namespace {

std::string limit_text(const std::optional<Bytes>& bytes) {
  return bytes ? human(*bytes) : "no limit";
}

std::string ladder_action_text(const Decision& decision) {
  const std::string pod = pod_name(*decision.pod);
  switch (decision.act) {
    case Act::kReclaimCache:
      return fmt::format("take {} of page cache from {}", limit_text(decision.bytes), pod);
    case Act::kLowerMemoryHigh:
      return fmt::format("hold {} at {} by memory.high", pod, limit_text(decision.bytes));
    case Act::kRaiseMemoryHigh:
      return fmt::format("raise the memory.high of {}{} to {}", part_prefix(decision.part), pod,
                         limit_text(decision.bytes));
    case Act::kRestoreMemoryHigh:
      return fmt::format("put the memory.high of {}{} back to {}", part_prefix(decision.part), pod,
                         limit_text(decision.bytes));
    case Act::kTerminate:
    case Act::kKill:
    case Act::kPreStop:
    case Act::kRemove:
    case Act::kReclaim:
      break;
  }
  return "";
}

// The reason of a step of the ladder.
std::string ladder_reason_text(const Decision& decision) {
  const Reason& reason = decision.reason;
  if (decision.act == Act::kRestoreMemoryHigh) return "";
  if (reason.cause == Cause::kStuck) return ": " + reason_text(reason, decision.pod.get());
  return fmt::format(": {} {}, below {}", name(reason.signal),
                     human_amount(reason.signal, reason.available),
                     human_amount(reason.signal, reason.threshold));
}

}  // namespace

std::string ladder_line(const Outcome& outcome) {
  const Decision& decision = outcome.decision;
  const std::string act = ladder_action_text(decision);
  switch (outcome.result) {
    case Outcome::Result::kStarted:
      return fmt::format("ladder: {}{}", act, ladder_reason_text(decision));
    case Outcome::Result::kDryRun:
      return fmt::format("ladder: would {}{}", act, ladder_reason_text(decision));
    case Outcome::Result::kDone:
      if (outcome.error == 0)
        return fmt::format("ladder: {}: done in {}", act, human(outcome.at - decision.decided_at));
      return fmt::format("ladder: {}: {}", act,
                         decision.act == Act::kReclaimCache && outcome.error == EAGAIN
                             ? "there was less"
                             : error_text(outcome.error));
    case Outcome::Result::kGone:
      return fmt::format("ladder: {}: gone", act);
    case Outcome::Result::kFailed:
      return fmt::format("ladder: cannot {}: {}", act, error_text(outcome.error));
  }
  return "";
}

std::string threshold_line(Signal signal, bool hard, std::int64_t limit, std::int64_t available) {
  Reason reason;
  reason.signal = signal;
  reason.hard = hard;
  reason.threshold = limit;
  reason.available = available;
  return fmt::format("{}: Attempting to reclaim {}: {}", kThresholdMet, resource_of(signal),
                     reason_text(reason, nullptr));
}

std::string condition_line(Condition condition, bool now) {
  return fmt::format("{}: {} is now {}", condition_reason(condition, now), name(condition), now);
}

std::string outcome_line(const Outcome& outcome, std::string_view qos) {
  const std::string pod = pod_with_usage(outcome.decision, qos);
  const bool whole = outcome.decision.part.whole();
  const std::string_view verb = whole ? "evict" : "kill";
  switch (outcome.result) {
    case Outcome::Result::kDone:
    case Outcome::Result::kStarted:
      return done_line(outcome.decision, pod);
    case Outcome::Result::kGone:
      return fmt::format("{} was gone before it could be {}", pod, whole ? "evicted" : "killed");
    case Outcome::Result::kFailed:
      return fmt::format("could not {} {}: {}", verb, pod, std::strerror(outcome.error));
    case Outcome::Result::kDryRun:
      return fmt::format("would {} {}: {}", verb, pod,
                         reason_text(outcome.decision.reason, outcome.decision.pod.get()));
  }
  return "";
}

std::string ending_line(const Eviction& eviction) {
  const Part& part = eviction.decision.part;
  const std::string pod = part_prefix(part) + pod_name(*eviction.decision.pod);
  const std::string returned =
      eviction.memory_returned ? human(*eviction.memory_returned) : "an unknown amount";
  if (eviction.ending == Ending::kTimedOut)
    return fmt::format("{} still has processes {} after its signal, {} returned", pod,
                       time_since_signal(eviction), returned);
  return fmt::format("{} {}: gone {} after its signal, {} returned",
                     part.whole() ? "evicted" : "killed", pod, time_since_signal(eviction),
                     returned);
}

}  // namespace headroom::report
