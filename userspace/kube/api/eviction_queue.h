// SPDX-License-Identifier: Apache-2.0
// EvictionQueue: the pending evictions and the position in the audit log. Both are written as one
// file, so that no eviction is lost between the two and none is taken twice.
#pragma once

#include "kube/api/audit_reader.h"
#include "kube/api/pending_eviction.h"

#include <headroom/result.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headroom::kube {

// What was published on the Node object. It must be removed when it is no longer wanted.
struct PublishedOnNode {
  bool conditions = false;
  bool taints = false;
  friend bool operator==(const PublishedOnNode&, const PublishedOnNode&) = default;
};

struct EvictionQueue {
  std::optional<Cursor> cursor;
  std::vector<PendingEviction> pending_evictions;  // oldest first
  PublishedOnNode node;
  friend bool operator==(const EvictionQueue&, const EvictionQueue&) = default;
};

// Adds an eviction, or merges it with the pending one of the same pod.
void take(EvictionQueue& queue, EvictionRecord evicted);

// Retry times are not saved: after a restart every open step is due.
std::string as_text(const EvictionQueue& queue);
// An error says what is wrong with the text.
Result<EvictionQueue> queue_of(const std::string& text);

}  // namespace headroom::kube
