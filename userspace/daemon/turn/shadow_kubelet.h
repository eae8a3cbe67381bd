// SPDX-License-Identifier: Apache-2.0
// KubeletShadow: what a kubelet with the same policy would have done, computed at every turn.
#pragma once

#include <headroom/policy.h>
#include <headroom/shadow.h>
#include <headroom/snapshot.h>

#include <utility>

namespace headroom::daemon {

class KubeletShadow {
 public:
  explicit KubeletShadow(Policy policy) : policy_(std::move(policy)) {}

  // Its timers start again, as those of a kubelet that restarts with another configuration.
  void reconfigure(const Policy& policy) {
    policy_ = policy;
    state_ = {};
  }
  // Valid until the next call.
  const ShadowResult& update(const Snapshot& snapshot, const Verdict& verdict) {
    shadow(policy_, snapshot, verdict, state_, result_);
    return result_;
  }

 private:
  Policy policy_;
  ShadowState state_;
  ShadowResult result_;
};

}  // namespace headroom::daemon
