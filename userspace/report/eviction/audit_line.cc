// SPDX-License-Identifier: Apache-2.0
#include "report/eviction/audit_line.h"

#include "base/json_text.h"
#include "base/json_values.h"
#include "report/eviction/messages.h"
#include "report/status/status_parts.h"

#include <time.h>

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

struct Renamed {
  const char* old_name;
  const char* new_name;
};

constexpr std::array kFields{Renamed{"act", "action"}, Renamed{"part", "target"},
                             Renamed{"minute", "flight_recording"}};
constexpr std::array kLatencies{Renamed{"signal_to_gone_ms", "signal_to_exit_ms"},
                                Renamed{"kill_to_gone_ms", "kill_to_exit_ms"}};
constexpr std::array kKubelet{Renamed{"lead_ms", "later_by_ms"}, Renamed{"same", "same_choice"}};
constexpr std::array kCandidate{Renamed{"over", "over_request"}, Renamed{"fate", "selection"}};
constexpr std::array kOutcomes{Renamed{"outlasting", "timed_out"},
                               Renamed{"vanished", "already_gone"}};
constexpr std::array kSelections{Renamed{"dying", "already_terminating"},
                                 Renamed{"futile", "nothing_to_free"}};

template <std::size_t N>
void rename_keys(nlohmann::json& object, const std::array<Renamed, N>& renames) {
  if (!object.is_object()) return;
  for (const auto& [old_name, new_name] : renames) {
    const auto found = object.find(old_name);
    if (found == object.end()) continue;
    nlohmann::json value = std::move(*found);
    object.erase(found);
    object.emplace(new_name, std::move(value));
  }
}

template <std::size_t N>
void rename_keys_at(nlohmann::json& object, const char* key,
                    const std::array<Renamed, N>& renames) {
  if (const auto found = object.find(key); found != object.end()) rename_keys(*found, renames);
}

template <std::size_t N>
void rename_value(nlohmann::json& object, const char* key, const std::array<Renamed, N>& renames) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  for (const auto& [old_name, new_name] : renames)
    if (*found == old_name) *found = new_name;
}

}  // namespace

void rename_old_fields(nlohmann::json& record) {
  if (!record.is_object()) return;
  rename_keys(record, kFields);
  rename_keys_at(record, "latency", kLatencies);
  rename_keys_at(record, "kubelet", kKubelet);
  rename_value(record, "outcome", kOutcomes);
  const auto ranking = record.find("ranking");
  if (ranking == record.end() || !ranking->is_array()) return;
  for (nlohmann::json& candidate : *ranking) {
    if (!candidate.is_object()) continue;
    rename_keys(candidate, kCandidate);
    rename_value(candidate, "selection", kSelections);
  }
}

std::string with_new_fields(std::string line) {
  if (line.find("\"act\":") == line.npos) return line;
  nlohmann::json record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return line;
  rename_old_fields(record);
  return to_json_text(record);
}

namespace {

using Json = nlohmann::ordered_json;

Json ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}
Json ms(Instant from, Instant to) {
  if (from == Instant{} || to == Instant{}) return nullptr;
  return ms(to - from);
}

Json pod_json(const Pod& pod, QosOf qos_of) {
  return {{"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"uid", pod.uid},
          {"qos", qos_name(pod, qos_of)},
          {"priority", pod.priority}};
}

Json reason_json(const Reason& reason) {
  if (reason.cause == Cause::kTaint)
    return {{"signal", cause_name(reason)}, {"taint", to_string(*reason.taint)}};
  if (reason.cause == Cause::kStuck)
    return {{"signal", cause_name(reason)},
            {"kind", "stuck"},
            {"threshold", reason.threshold},
            {"available", nullptr},
            {"capacity", nullptr}};
  const bool of_a_limit = reason.limit != StorageLimit::kNone;
  return {{"signal", cause_name(reason)},
          {"kind", of_a_limit ? "limit" : kind_name(reason.hard)},
          {"threshold", reason.threshold},
          {"available", of_a_limit ? Json(nullptr) : Json(reason.available)},
          {"capacity", of_a_limit ? Json(nullptr) : Json(reason.capacity)}};
}

// The part of the pod that was killed; null: the whole pod.
Json part_json(const Part& part) {
  if (part.whole()) return nullptr;
  Json json{{"cgroup", part.cgroup.value}, {"oom_group", part.group}};
  if (part.unit == EvictionUnit::kProcess) {
    json["pid"] = part.process.pid;
    json["comm"] = part.comm.data();
  }
  return json;
}

// The ladder's steps in the minute before the decision; null: none.
Json ladder_json(const LadderStepCounts& ladder) {
  Json json = Json::object();
  for (std::size_t i = 0; i < ladder.size(); ++i)
    if (ladder[i] > 0) json[std::string(kLadderStepNames[i])] = ladder[i];
  return json.empty() ? Json(nullptr) : json;
}

Json instants_json(const Eviction& eviction) {
  const Reason& reason = eviction.decision.reason;
  return {{"last_clear", boot_ns(reason.last_clear)},
          {"first_crossed", boot_ns(reason.first_crossed)},
          {"sampled", boot_ns(reason.sampled_at)},
          {"decided", boot_ns(eviction.decision.decided_at)},
          {"signalled", boot_ns(eviction.signalled_at)},
          {"terminated", boot_ns(eviction.terminated_at)},
          {"killed", boot_ns(eviction.killed_at)},
          {"ended", boot_ns(eviction.ended_at)}};
}

// The true crossing lies between the last good sample and the first bad one, so the latency has an
// upper and a lower bound.
Json latencies_json(const Eviction& eviction) {
  const Reason& reason = eviction.decision.reason;
  const Instant decided = eviction.decision.decided_at;
  const bool gone = eviction.ending == Ending::kEvicted;
  return {
      {"crossing_to_decision_ms", ms(reason.last_clear, decided)},
      {"first_seen_to_decision_ms", ms(reason.first_crossed, decided)},
      {"sample_to_decision_ms", ms(reason.sampled_at, decided)},
      {"decision_to_signal_ms", ms(decided, eviction.signalled_at)},
      {"signal_to_exit_ms", gone ? ms(eviction.signalled_at, eviction.ended_at) : Json(nullptr)},
      {"kill_to_exit_ms", gone ? ms(eviction.killed_at, eviction.ended_at) : Json(nullptr)}};
}

// The prediction at the decision; `latency` and `memory_returned` have the result.
Json predicted_json(const Decision& decision) {
  const Json until = ms(decision.decided_at, decision.deadline);
  const bool kill = decision.act == Act::kKill;
  const auto& release = decision.rank_info.predicted;
  return {{"memory", or_null(decision.rank_info.working_set)},
          {"release", or_null(release)},
          {"release_ms", release ? ms(decision.rank_info.predicted_in) : Json(nullptr)},
          {"within_ms", kill ? until : Json(nullptr)},
          {"grace_ms", kill ? Json(nullptr) : until}};
}

// What the kubelet would have done instead, by the model of headroom/shadow.h.
Json kubelet_json(const std::optional<KubeletPrediction>& would) {
  if (!would) return nullptr;
  Json choice = nullptr;
  if (would->choice)
    choice = {{"namespace", would->choice->pod_namespace},
              {"name", would->choice->name},
              {"uid", would->choice->uid}};
  return {{"later_by_ms", ms(would->lead)},
          {"samples_age_ms", ms(would->samples_age)},
          {"choice", std::move(choice)},
          {"same_choice", would->same}};
}

Json candidate_json(const Ranked& ranked) {
  return {{"namespace", ranked.pod->pod_namespace},
          {"name", ranked.pod->name},
          {"uid", ranked.pod->uid},
          {"usage", or_null(ranked.usage)},
          {"request", ranked.request},
          {"over_request", ranked.usage ? Json(*ranked.usage - ranked.request) : Json(nullptr)},
          {"priority", ranked.priority},
          {"age_ms", ranked.usage ? ms(ranked.age) : Json(nullptr)},
          {"predicted", or_null(ranked.predicted)},
          {"selection", name(ranked.selection)}};
}

Json ranking_json(const std::vector<Ranked>& ranking) {
  Json lines = Json::array();
  for (const Ranked& ranked : ranking)
    lines.push_back(candidate_json(ranked));
  return lines;
}

Json error_json(const Eviction& eviction) {
  if (eviction.ending != Ending::kFailed) return nullptr;
  return std::strerror(eviction.error);
}

}  // namespace

WallTime wall_time_of(Instant instant) {
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  const Instant now{std::chrono::seconds(boot.tv_sec) + std::chrono::nanoseconds(boot.tv_nsec)};
  return std::chrono::system_clock::now() -
         std::chrono::duration_cast<WallTime::duration>(now - instant);
}

Json audit_json(const Eviction& eviction, WallTime decided_at, QosOf qos_of,
                const std::string& flight_recording) {
  const Decision& decision = eviction.decision;
  Json line{{"time", rfc3339_micro(decided_at)},
            {"boot_ns", boot_ns(decision.decided_at)},
            {"outcome", name(eviction.ending)},
            {"pod", pod_json(*decision.pod, qos_of)},
            {"cgroup", {{"id", decision.cgroup.value}, {"path", eviction.path}}}};
  line.update(reason_json(decision.reason));
  line["action"] = name(decision.act);
  line["unit"] = name(decision.part.unit);
  line["target"] = part_json(decision.part);
  line["working_set"] = or_null(decision.rank_info.working_set);
  line["memory_request"] = decision.rank_info.memory_request.count;
  line["usage"] = or_null(decision.rank_info.usage);
  line["request"] = decision.rank_info.request;
  line["rank"] = decision.rank_info.rank;
  line["candidates"] = decision.rank_info.candidates;
  line["predicted"] = predicted_json(decision);
  line["ladder"] = ladder_json(eviction.ladder);
  line["swap"] = swap_json(eviction.swap_room);
  line["kubelet"] = kubelet_json(eviction.kubelet);
  line["instants_ns"] = instants_json(eviction);
  line["latency"] = latencies_json(eviction);
  line["memory_returned"] = or_null(eviction.memory_returned);
  line["error"] = error_json(eviction);
  line["flight_recording"] = flight_recording.empty() ? Json(nullptr) : Json(flight_recording);
  line["allocations"] = eviction.allocations;
  line["message"] = eviction.message;
  line["ranking"] = ranking_json(eviction.ranking);
  return line;
}

std::string audit_line(const Eviction& eviction, WallTime decided_at, QosOf qos_of,
                       const std::string& flight_recording) {
  return to_json_text(audit_json(eviction, decided_at, qos_of, flight_recording)) + '\n';
}

}  // namespace headroom::report
