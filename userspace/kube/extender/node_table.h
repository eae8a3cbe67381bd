// SPDX-License-Identifier: Apache-2.0
// NodeTable: the summaries of the cluster's nodes, by name, as the API server has them. Bounded;
// may be used on any thread.
#pragma once

#include "kube/extender/extender_request.h"
#include "kube/scheduling/node_summary.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace headroom::kube {

class NodeTable {
 public:
  using Summaries = std::map<std::string, NodeSummary, std::less<>>;

  // All nodes, after a list.
  void replace(Summaries all);
  // One of them has changed; absent: it has no summary, or is gone. Beyond kMaxExtenderNodes a new
  // one is left out.
  void set(const std::string& name, std::optional<NodeSummary> summary);
  void find(const std::string& name, const UseSummary& use) const;
  // Of nodes with a summary.
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  Summaries summaries_;
};

// The name and the summary of a Node or its PartialObjectMetadata; the name is empty if it is none.
std::pair<std::string, std::optional<NodeSummary>> summary_of_node(const nlohmann::json& node);

}  // namespace headroom::kube
