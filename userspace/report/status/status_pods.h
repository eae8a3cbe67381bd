// SPDX-License-Identifier: Apache-2.0
// The pods of the status document, and how many each QoS class has.
#pragma once

#include "report/view/node_view.h"
#include "report/view/pod_waits.h"

#include <headroom/units.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

struct QosGroup {
  std::string_view qos;
  // usage over request, and the pod
  std::vector<std::pair<std::optional<Bytes>, const PodRow*>> pods;
};

std::vector<QosGroup> qos_groups_of(const IndexedCgroupTable& cgroups, QosOf qos_of);
nlohmann::ordered_json qos_groups_json(const std::vector<QosGroup>& qos_groups);

// Appends a JSON array, each pod by itself: all of them as one JSON value take ten times the text,
// and the heap of the thread that made it would keep that, because memory is locked: glibc's
// madvise(MADV_DONTNEED) fails then.
void append_pods(std::string& text, const NodeView& node, const IndexedCgroupTable& cgroups,
                 const std::vector<QosGroup>& qos_groups, QosOf qos_of,
                 std::optional<std::size_t> most);

}  // namespace headroom::report
