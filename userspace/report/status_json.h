// SPDX-License-Identifier: Apache-2.0
// Status JSON: what is shown, as one document: the answer of D-Bus Status() and what headroomctl
// prints with --json.
//
// Amounts are in bytes, inodes, tasks or millionths, times in seconds or, with _ns, nanoseconds of
// CLOCK_BOOTTIME; counters of cgroups are totals, for the reader to difference. null: not known.
#pragma once

#include "report/node_view.h"
#include "report/reporter.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

nlohmann::ordered_json status_json(const NodeView& node, const CgroupTable& cgroups, QosOf qos_of);

// The latest of both as text; "{}" before there is one. Any thread.
std::string status_text(const Shown& shown, QosOf qos_of);

constexpr std::string_view name(Mode mode) {
  return mode == Mode::kEnforce ? "enforce" : "observe";
}

}  // namespace headroom::report
