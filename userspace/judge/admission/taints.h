// SPDX-License-Identifier: Apache-2.0
// Taints and tolerations: whether a pod tolerates a taint, and for how long (kubelet: lifecycle and
// preemption).
#pragma once

#include <headroom/pod.h>
#include <headroom/result.h>
#include <headroom/signal.h>
#include <headroom/taint.h>
#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

// Edits of a node's taints, as kubectl taint writes them: "dedicated=gpu:NoExecute" adds,
// "dedicated:NoExecute-" and "dedicated-" take away.

struct TaintEdit {
  bool removes = false;
  std::string key;
  std::string value{};
  std::optional<TaintEffect> effect{};  // absent, of a removal: every effect
  friend bool operator==(const TaintEdit&, const TaintEdit&) = default;
};

// Errors name the valid form.
Result<TaintEdit> parse_taint_edit(std::string_view text);

// The error in a taint's key or value, by the API server's rules for labels; "": it is valid.
std::string taint_error(const Taint& taint);

using TaintsOrErrors = tl::expected<std::vector<Taint>, std::vector<std::string>>;

// Applies all edits or none, and returns every error: a taint to be removed must exist, and an
// existing one with another value is replaced only with `overwrite`.
TaintsOrErrors apply_taint_edits(std::vector<Taint> taints, std::span<const TaintEdit> edits,
                                 bool overwrite);

// After a change of configuration: new taints of the configuration are added or replaced, removed
// ones are dropped, and the operator's edits are kept.
std::vector<Taint> reconcile_taints(std::vector<Taint> taints,
                                    std::span<const Taint> configured_before,
                                    std::span<const Taint> configured_now);

// Shared, so that a reason can refer to a taint without a copy.
using TaintRef = std::shared_ptr<const Taint>;

// An empty effect is every effect; an empty key, with Exists, every key. A toleration that could
// not be parsed tolerates nothing here, and every taint that it may be for in toleration_time().
bool tolerates(const Toleration& toleration, const Taint& taint);

// By the pod's own tolerations, or by those that every pod of its kind gets: memory pressure for
// all classes but BestEffort; for a DaemonSet's pod any pressure, and a node that is cordoned or
// not ready.
bool tolerates(const Pod& pod, const Taint& taint);

// How long a pod stays on a node with these taints; those without NoExecute do not count.
struct TolerationTime {
  enum class Kind : std::uint8_t { kForever, kFinite, kNone };
  Kind kind = Kind::kForever;
  Duration length{0};  // kFinite: more than zero
  TaintRef taint{};    // if not forever: the taint that ends it first
};
TolerationTime toleration_time(const Pod& pod, std::span<const TaintRef> taints);

// The taint of a condition, such as "node.kubernetes.io/memory-pressure:NoSchedule".
const Taint& taint_of(Condition condition);
std::vector<Taint> condition_taints(const std::array<bool, kConditions>& conditions);

}  // namespace headroom
