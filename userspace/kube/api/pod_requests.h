// SPDX-License-Identifier: Apache-2.0
// Pod requests: what the API server is sent about a pod that was evicted. Pure.
#pragma once

#include "kube/api/pending_eviction.h"
#include "kube/http_client.h"

#include <string>

namespace headroom::kube {

// Field manager, and reporting component of Events.
inline constexpr std::string_view kManager = "headroom";

// PATCH .../status as the kubelet's own, strategic merge: phase Failed, reason Evicted, message,
// condition DisruptionTarget. The uid in it is a precondition: another pod by that name is not
// touched.
HttpRequest pod_status_patch(const PendingEviction& pending);

// POST .../eviction, which respects disruption budgets; policy/v1, or v1beta1 if that is unknown.
HttpRequest pod_eviction(const PendingEviction& pending);

HttpRequest pod_deletion(const PendingEviction& pending);

// Of either: the kubelet's for a hard eviction. Not 0: that takes the pod out of the API before the
// kubelet has seen to what is left of it (volumes, a container it restarted in the meantime).
inline constexpr int kGraceSeconds = 1;

// Is it still that pod?
HttpRequest pod_get(const PendingEviction& pending);

// A core/v1 Event, as the kubelet's recorder makes them; made once, it only counts on.
HttpRequest event_creation(const PendingEviction& pending, const PendingEvictionOptions& options);
HttpRequest event_patch(const PendingEviction& pending);

// "/api/v1/namespaces/default/pods/web"; a name that comes from a hand-written manifest is escaped.
std::string pod_path(const EvictionRecord& evicted);
// Of one segment of a path.
std::string escaped(std::string_view segment);

}  // namespace headroom::kube
