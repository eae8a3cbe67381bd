// SPDX-License-Identifier: Apache-2.0
// ShadowKeeper: asks at every turn what the kubelet would have done, and tells the reporter first.
#pragma once

#include "report/reporter.h"

#include <headroom/shadow.h>

namespace headroom::daemon {

class ShadowKeeper final : public Reporter {
 public:
  ShadowKeeper(report::NodeReporter& next, Policy policy)
      : next_(&next), policy_(std::move(policy)) {}

  // Its clocks begin anew, as a kubelet's do that is restarted for another configuration.
  void adopt(const Policy& policy) {
    policy_ = policy;
    state_ = {};
  }
  void tell(const Snapshot& snapshot, const Verdict& verdict,
            std::span<const Outcome> outcomes) override {
    shadow(policy_, snapshot, verdict, state_, sight_);
    next_->note_shadow(sight_);
    next_->tell(snapshot, verdict, outcomes);
  }

 private:
  report::NodeReporter* next_;
  Policy policy_;
  ShadowState state_;
  ShadowSight sight_;
};

}  // namespace headroom::daemon
