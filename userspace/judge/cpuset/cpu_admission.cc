// SPDX-License-Identifier: Apache-2.0
#include "judge/cpuset/cpu_admission.h"

#include <optional>
#include <utility>

namespace headroom {
namespace {

using Step = tl::expected<CpuState, CpuRefusal>;

class PodAdmission {
 public:
  PodAdmission(const StaticPolicy& policy, const Pod& pod, const OtherHints& others)
      : policy_(policy), pod_(pod), others_(others) {}

  // The whole pod's hint where that is the scope; null container.
  tl::expected<std::optional<NodeSet>, CpuRefusal> affinity(const CpuState& state,
                                                            const Container* container) const {
    std::vector<ProviderHints> hints;
    if (others_) hints = others_(container);
    ProviderHints own =
        container ? policy_.hints(state, pod_, *container) : policy_.hints(state, pod_);
    if (!own.empty())
      hints.push_back(device_hints(policy_.config().devices, policy_.topology().numa(), pod_));
    hints.push_back(std::move(own));
    const MergedHint merged = merge_hints(rules(), policy_.topology().numa(), hints);
    if (!merged.admit) return tl::make_unexpected(CpuRefusal{TopologyAffinityError{}});
    return merged.best.nodes;
  }

  Step add(CpuState state, const Container& container) const {
    if (whole_pod()) return policy_.allocate(std::move(state), pod_, container, of_pod_);
    const auto near = affinity(state, &container);
    if (!near) return tl::make_unexpected(near.error());
    return policy_.allocate(std::move(state), pod_, container, *near);
  }

  std::optional<CpuRefusal> start(const CpuState& state) {
    if (!whole_pod()) return std::nullopt;
    const auto near = affinity(state, nullptr);
    if (!near) return near.error();
    of_pod_ = *near;
    return std::nullopt;
  }

 private:
  const TopologyRules& rules() const { return policy_.config().topology_rules; }
  bool whole_pod() const { return rules().scope == TopologyScope::kPod; }

  const StaticPolicy& policy_;
  const Pod& pod_;
  const OtherHints& others_;
  std::optional<NodeSet> of_pod_;
};

}  // namespace

tl::expected<CpuState, ContainerRefusal> admit(const StaticPolicy& policy, const CpuState& state,
                                               const Pod& pod, const OtherHints& others) {
  PodAdmission admitting(policy, pod, others);
  if (const auto refusal = admitting.start(state))
    return tl::make_unexpected(ContainerRefusal{"", *refusal});
  CpuState next = state;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list) {
      Step step = admitting.add(std::move(next), container);
      if (!step) return tl::make_unexpected(ContainerRefusal{container.name, step.error()});
      next = *std::move(step);
    }
  return next;
}

}  // namespace headroom
