// SPDX-License-Identifier: Apache-2.0
#include "kube/extender/node_table.h"

#include "base/json_text.h"

#include <nlohmann/json.hpp>

namespace headroom::kube {

void NodeTable::replace(Summaries all) {
  const std::lock_guard lock(mutex_);
  summaries_ = std::move(all);
}

void NodeTable::set(const std::string& name, std::optional<NodeSummary> summary) {
  const std::lock_guard lock(mutex_);
  if (!summary)
    summaries_.erase(name);
  else if (summaries_.size() < kMaxExtenderNodes || summaries_.contains(name))
    summaries_.insert_or_assign(name, std::move(*summary));
}

void NodeTable::find(const std::string& name, const UseSummary& use) const {
  const std::lock_guard lock(mutex_);
  const auto found = summaries_.find(name);
  use(found == summaries_.end() ? nullptr : &found->second);
}

std::size_t NodeTable::size() const {
  const std::lock_guard lock(mutex_);
  return summaries_.size();
}

std::pair<std::string, std::optional<NodeSummary>> summary_of_node(const nlohmann::json& node) {
  if (!node.is_object() || !node.contains("metadata")) return {};
  const nlohmann::json& metadata = node["metadata"];
  std::string name = text_at(metadata, "name");
  if (name.empty() || name.size() > kMaxNodeName || !metadata.contains("annotations"))
    return {std::move(name), std::nullopt};
  auto summary = node_summary_of(text_at(metadata["annotations"], kSummaryAnnotation));
  if (!summary) return {std::move(name), std::nullopt};
  return {std::move(name), std::move(*summary)};
}

}  // namespace headroom::kube
