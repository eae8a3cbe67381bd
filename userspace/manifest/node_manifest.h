// SPDX-License-Identifier: Apache-2.0
// Node manifests: v1 Nodes as files, ours (nodeStatus) or any other's: `kubectl get node -o yaml`.
#pragma once

#include "config/yaml/yaml.h"
#include "judge/admission/node_state.h"

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::observe {

struct NodeManifests {
  std::vector<NodeState> nodes;  // those without a complaint of their own
  config::Diagnostics diagnostics;
};

// One file: any number of documents, each a Node, a NodeList or a List of Nodes. Conditions are not
// read: a Node bears the taints that follow from them. Without our own section `headroom` nothing
// is known of the node's pods, and it counts as empty.
NodeManifests parse_nodes(const std::string& text, const std::string& file);
NodeManifests read_nodes(const std::filesystem::path& file);

}  // namespace headroom::observe
