// SPDX-License-Identifier: Apache-2.0
// The requests to the API server by which the node is described to its scheduler. Pure.
#pragma once

#include "kube/http_client.h"
#include "kube/scheduling/scheduling_advice.h"

#include <headroom/result.h>

#include <optional>
#include <string>

namespace headroom::kube {

// Server-side apply removes what its field manager no longer sends: the conditions of
// NodeConditionSync have another one.
inline constexpr std::string_view kSchedulingManager = "headroom-scheduling";

// Soft taints, effect PreferNoSchedule; see own_taints_patch(). A taint whose advice is not known
// stays as it is. Without `advice`, headroom's soft taints are removed.
Result<std::optional<HttpRequest>> soft_taints_patch(const std::string& node_name,
                                                     const std::string& node,
                                                     const std::optional<AdviceStates>& advice);

// The annotation headroom.io/status. It has no other writer, so it is written without a resource
// version. `text`: "" removes it.
HttpRequest annotation_patch(const std::string& node_name, const std::string& text);

// The extended resources headroom.io/batch-memory and batch-cpu: both of the capacity, from which a
// kubelet takes what it calls allocatable, and of that.
struct BatchAmounts {
  Bytes memory;
  MilliCpu cpu;
  friend bool operator==(const BatchAmounts&, const BatchAmounts&) = default;
};

// Conditions of the same names, and the batch resources. `heartbeat`: RFC 3339. What is absent is
// removed.
HttpRequest scheduling_apply(const std::string& node_name,
                             const std::optional<AdviceStates>& advice,
                             const std::optional<BatchAmounts>& batch,
                             const std::string& heartbeat);

// Whether the Node has these amounts: a kubelet sets them to zero when it registers the node again.
// `node`: the server's response to node_get().
bool has_batch(const std::string& node, const BatchAmounts& batch);

}  // namespace headroom::kube
