// SPDX-License-Identifier: Apache-2.0
// Requests of kube-scheduler, or of an impostor, to the extender, and the annotation that nodes are
// scored by: no node is answered that was not asked for, and each is, once.
#include "kube/extender/extender_request.h"

#include "fuzz.h"
#include "kube/scheduling/node_summary.h"

#include <string>

#include <nlohmann/json.hpp>

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string text(fuzz::text_of(bytes, size));
  const auto summary = kube::node_summary_of(text);
  if (summary) {
    const std::string again = kube::as_text(*summary);
    fuzz::promise(again.size() < kube::kMaxSummaryBytes, "a summary is written within its limit");
    fuzz::promise(kube::node_summary_of(again).has_value(), "a summary that is written is read");
  }
  const auto args = kube::extender_args_of(text);
  if (!args) return 0;
  fuzz::promise(args->names.size() <= kube::kMaxExtenderNodes, "a request has a limit of nodes");
  const auto find = [&](const std::string& node, const kube::UseSummary& use) {
    use(node.size() % 2 == 0 && summary ? &*summary : nullptr);
  };
  const auto scores = nlohmann::json::parse(kube::prioritize_answer(*args, find, WallTime{}));
  fuzz::promise(scores.size() == args->names.size(), "each node has one score");
  (void)nlohmann::json::parse(kube::filter_answer(*args, find, WallTime{}));
  return 0;
}
