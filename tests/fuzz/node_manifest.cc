// SPDX-License-Identifier: Apache-2.0
// v1 Nodes of any origin, as `headroomctl admit --node` reads them.
#include "manifest/node_manifest.h"

#include "fuzz.h"

#include <string>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const auto manifests = observe::parse_nodes(std::string(fuzz::text_of(bytes, size)), "fuzz.yaml");
  fuzz::promise(!manifests.nodes.empty() || !manifests.diagnostics.empty(),
                "without a node there is a reason");
  for (const NodeState& node : manifests.nodes) {
    fuzz::promise(!node.name.empty(), "a node has a name");
    for (const Taint& taint : node.taints)
      fuzz::promise(taint.key.size() <= size, "a taint is of the text");
  }
  return 0;
}
