// SPDX-License-Identifier: Apache-2.0
// Edits of a node's taints, as kubectl taint writes them: "dedicated=gpu:NoExecute" adds,
// "dedicated:NoExecute-" and "dedicated-" take away.
#pragma once

#include <headroom/result.h>
#include <headroom/taint.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace headroom {

struct TaintEdit {
  bool removes = false;
  std::string key;
  std::string value{};
  std::optional<TaintEffect> effect{};  // absent, of a removal: every effect
  friend bool operator==(const TaintEdit&, const TaintEdit&) = default;
};

// Errors say what would be right.
Result<TaintEdit> parse_taint_edit(std::string_view text);

// What is wrong with a taint's key or value, by the API server's rules for labels; "": nothing.
std::string taint_error(const Taint& taint);

using TaintsOrErrors = tl::expected<std::vector<Taint>, std::vector<std::string>>;

// All of the edits or none, with every error at once: a taint to be removed must be there, and one
// that is there with another value is replaced only with `overwrite`.
TaintsOrErrors apply_taint_edits(std::vector<Taint> taints, std::span<const TaintEdit> edits,
                                 bool overwrite);

// After a change of configuration: what it newly names is added or replaced, what it names no
// longer is dropped, and what was edited by hand since stays.
std::vector<Taint> reconcile_taints(std::vector<Taint> taints,
                                    std::span<const Taint> configured_before,
                                    std::span<const Taint> configured_now);

}  // namespace headroom
