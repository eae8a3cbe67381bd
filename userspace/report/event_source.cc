// SPDX-License-Identifier: Apache-2.0
#include "report/event_source.h"

#include "report/eviction/messages.h"

#include <cstring>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

Json pod_json(const Pod& pod, QosOf qos_of) {
  return {{"namespace", pod.pod_namespace},
          {"name", pod.name},
          {"uid", pod.uid},
          {"qos", qos_name(pod, qos_of)},
          {"priority", pod.priority}};
}

// How often the setting of this slice differed; 0 if the slice is new.
std::uint64_t drift_of(const SlicesView& view, const std::string& path,
                       const std::string& setting) {
  for (const SliceView& slice : view.slices)
    if (slice.path == path) {
      const auto found = slice.drift.find(setting);
      return found == slice.drift.end() ? 0 : found->second;
    }
  return 0;
}

Json setting_json(const SliceView& slice, const std::string& setting) {
  Json fields{{"slice", slice.path}, {"setting", setting}};
  for (const CgroupSetting& desired : cgroup_settings(slice.desired))
    if (desired.file == setting) fields["desired"] = desired.value;
  return fields;
}

}  // namespace

void EventSource::add_eviction(const Eviction& eviction, std::string_view phase) {
  const Decision& decision = eviction.decision;
  const bool ended = phase == "ended";
  Json fields{{"phase", phase},
              {"pod", decision.pod ? pod_json(*decision.pod, qos_of_) : Json(nullptr)},
              {"signal", cause_name(decision.reason)},
              {"whole_pod", decision.part.whole()},
              {"message", eviction.message}};
  if (ended) {
    fields["outcome"] = name(eviction.ending);
    fields["memory_returned"] =
        eviction.memory_returned ? Json(eviction.memory_returned->count) : Json(nullptr);
    fields["error"] = eviction.error ? Json(std::strerror(eviction.error)) : Json(nullptr);
  }
  const Instant at =
      ended && eviction.ended_at != Instant{} ? eviction.ended_at : decision.decided_at;
  log_.add("eviction", wall_time_(at), fields);
}

void EventSource::update_conditions(const std::array<bool, kConditions>& conditions, Instant at) {
  for (std::size_t i = 0; i < kConditions; ++i)
    if (conditions[i] != conditions_[i])
      log_.add("condition", wall_time_(at),
               {{"condition", kConditionNames[i]}, {"status", conditions[i]}});
  conditions_ = conditions;
}

void EventSource::update_slices(const SlicesRef& slices, Instant at) {
  if (slices == slices_) return;
  if (slices && slices_)
    for (const SliceView& slice : slices->slices)
      for (const auto& [setting, count] : slice.drift)
        if (count > drift_of(*slices_, slice.path, setting))
          log_.add("drift", wall_time_(at), setting_json(slice, setting));
  slices_ = slices;
}

void EventSource::add_oom_kill(const KernelOomKill& kill, Instant at) {
  log_.add("oom_kill", wall_time_(at),
           {{"pod", kill.pod ? pod_json(*kill.pod, qos_of_) : Json(nullptr)},
            {"cgroup", kill.path},
            {"pid", kill.pid},
            {"comm", kill.comm},
            {"limit_of", kill.limit_of ? Json(kill.limit_path) : Json(nullptr)},
            {"message", kernel_oom_line(kill)}});
}

}  // namespace headroom::report
