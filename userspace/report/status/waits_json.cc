// SPDX-License-Identifier: Apache-2.0
#include "report/status/waits_json.h"

#include <string>

namespace headroom::report {

using Json = nlohmann::ordered_json;

Json waits_json(const hr_waits& waits) {
  const auto slow = quantile(waits, 0.99);
  return {{"ns", waits.ns},
          {"count", waits.count},
          {"p99_ns", slow ? Json(slow->count()) : Json(nullptr)}};
}

Json stalls_json(const hr_stalls& stalls) {
  Json json = Json::object();
  for (std::size_t cause = 0; cause < HR_STALL_CAUSES; ++cause)
    if (stalls.causes[cause].count > 0)
      json[std::string(kStallCauseNames[cause])] = waits_json(stalls.causes[cause]);
  return json;
}

Json node_waits_json(const NodeWaits& waits) {
  return {{"stalls", waits.stalls ? stalls_json(*waits.stalls) : Json(nullptr)},
          {"throttled", waits.throttles ? waits_json(*waits.throttles) : Json(nullptr)}};
}

Json programs_json(const Programs& programs) {
  Json json = Json::object();
  for (const ProgramView& program : programs)
    if (!program.name.empty())
      json[std::string(program.name)] = {{"loaded", !program.hook.empty()},
                                         {"hook", program.hook},
                                         {"lost", program.lost_in_map + program.lost_in_ring}};
  return json;
}

}  // namespace headroom::report
