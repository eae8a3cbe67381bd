// SPDX-License-Identifier: Apache-2.0
// Pod requests: the requests to the API server about a pod that was evicted. Pure.
#pragma once

#include "kube/api/pending_eviction.h"
#include "kube/http_client.h"

#include <string>

namespace headroom::kube {

// The field manager, and the reporting component of Events.
inline constexpr std::string_view kManager = "headroom";

// PATCH .../status by strategic merge, as the kubelet does: phase Failed, reason Evicted, message,
// condition DisruptionTarget. The uid is a precondition: another pod of this name is not changed.
HttpRequest pod_status_patch(const PendingEviction& pending);

// POST .../eviction, which respects disruption budgets: policy/v1, or v1beta1 if the server does
// not know v1.
HttpRequest pod_eviction(const PendingEviction& pending);

HttpRequest pod_deletion(const PendingEviction& pending);

// The grace period of an eviction and of a deletion, as the kubelet's for a hard eviction. It is
// not 0, because that removes the pod from the API before the kubelet has cleaned up (volumes, a
// container that it restarted in the meantime).
inline constexpr int kGraceSeconds = 1;

// GET of the pod, to compare its uid.
HttpRequest pod_get(const PendingEviction& pending);

// A core/v1 Event, as the kubelet's recorder creates them. It is created once; event_patch() then
// raises its count.
HttpRequest event_creation(const PendingEviction& pending, const PendingEvictionOptions& options);
HttpRequest event_patch(const PendingEviction& pending);

// "/api/v1/namespaces/default/pods/web". Names are escaped, because a hand-written manifest may
// contain any name.
std::string pod_path(const EvictionRecord& evicted);
// Percent-encodes one segment of a path.
std::string escaped(std::string_view segment);

}  // namespace headroom::kube
