// SPDX-License-Identifier: Apache-2.0
// PostQueue: the postings that are not finished, and how far the audit log is in it: one value,
// written as one file, so that no eviction is lost between the two and none is taken twice.
#pragma once

#include "kube/post/follow.h"
#include "kube/post/posting.h"

#include <headroom/result.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace headroom::kube {

// What is told of the node stands in it too: it must be taken back when it is not wanted any more.
struct NodeTold {
  bool conditions = false;
  bool taints = false;
  friend bool operator==(const NodeTold&, const NodeTold&) = default;
};

struct PostQueue {
  std::optional<Cursor> cursor;
  std::vector<Posting> postings;  // oldest first
  NodeTold node;
  friend bool operator==(const PostQueue&, const PostQueue&) = default;
};

void take(PostQueue& queue, Evicted evicted);

// Waits are not kept: after a restart all is due.
std::string as_text(const PostQueue& queue);
// An error says what is wrong with the text.
Result<PostQueue> queue_of(const std::string& text);

}  // namespace headroom::kube
