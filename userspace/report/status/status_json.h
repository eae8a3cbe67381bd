// SPDX-License-Identifier: Apache-2.0
// Status JSON: everything that is published, as one document: the answer of the D-Bus method
// Status() and the output of headroomctl --json.
//
// Amounts are in bytes, inodes, tasks or millionths, times in seconds or, with _ns, nanoseconds of
// CLOCK_BOOTTIME; counters of cgroups are totals, so a reader computes differences. null: unknown.
#pragma once

#include "report/view/node_view.h"
#include "report/view/pod_waits.h"
#include "report/view/published_views.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// With `most`, "pods" lists no more than this many of each QoS class, those furthest above their
// requests, and all that are being killed; "qos_classes" counts all in any case. The members of
// `more`, an object, come last.
std::string status_text(const NodeView& node, const IndexedCgroupTable& cgroups, QosOf qos_of,
                        std::optional<std::size_t> most, const nlohmann::ordered_json& more);

// Of what was published last, with headroom-kube's status file as "kubernetes"; "{}" before the
// first publication. Called on any thread except the loop's.
std::string status_text(const PublishedViews& views, QosOf qos_of,
                        const std::filesystem::path& kubernetes = {});

constexpr std::string_view name(Mode mode) {
  return mode == Mode::kEnforce ? "enforce" : "observe";
}

}  // namespace headroom::report
