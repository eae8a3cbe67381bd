// SPDX-License-Identifier: Apache-2.0
// ShadowKeeper: asks at every turn what the kubelet would have done, and tells the reporter first.
#pragma once

#include "report/reporter.h"

#include <headroom/shadow.h>

namespace headroom::daemon {

class ShadowReporter final : public Reporter {
 public:
  ShadowReporter(report::NodeReporter& next, Policy policy)
      : next_(&next), policy_(std::move(policy)) {}

  // Its clocks begin anew, as a kubelet's do that is restarted for another configuration.
  void reconfigure(const Policy& policy) {
    policy_ = policy;
    state_ = {};
  }
  void report_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes) override {
    shadow(policy_, snapshot, verdict, state_, shadow_result_);
    next_->record_shadow(shadow_result_);
    next_->report_turn(snapshot, verdict, outcomes);
  }

 private:
  report::NodeReporter* next_;
  Policy policy_;
  ShadowState state_;
  ShadowResult shadow_result_;
};

}  // namespace headroom::daemon
