// SPDX-License-Identifier: Apache-2.0
// Standby: keeps the sentinel's list current, on the way to whoever reports.
#pragma once

#include "act/host_actuator.h"
#include "act/kill/sentinel.h"
#include "observe/node/node_source.h"

#include <headroom/ports.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace headroom::daemon {

class FailsafeList final : public Reporter {
 public:
  // Who stands first changes slowly; ranking all pods each second would be for nothing.
  static constexpr Duration kPeriod = std::chrono::seconds(5);
  static constexpr std::size_t kMax = 16;

  // Told whenever the list is made anew, on the loop's thread; must not wait.
  using OnList = std::function<void(const Snapshot&, std::span<const Decision>)>;

  // All of these outlive it.
  FailsafeList(Reporter& next, act::HostActuator& actuator,
               const std::filesystem::path& cgroup_root, OnList on_list);

  void reconfigure(const Policy& policy);
  void report_turn(const Snapshot& snapshot, const Verdict& verdict,
                   std::span<const Outcome> outcomes) override;

  // Whom a hard threshold of memory would evict now; null: nobody, or nobody has looked yet.
  const std::shared_ptr<const Pod>& first() const { return first_; }

  // The loop turned, and does again by then.
  void beat(Instant due) { sentinel_.beat(due); }
  void collect(std::vector<Outcome>& ended) { sentinel_.collect(ended); }
  std::uint64_t hangs() const { return sentinel_.hangs(); }
  std::uint64_t kills() const { return sentinel_.kills(); }

 private:
  Reporter& next_;
  act::HostActuator& actuator_;
  const OnList on_list_;
  Policy policy_;
  std::optional<Instant> updated_at_;
  std::shared_ptr<const Pod> first_;
  observe::NodeSource memory_;  // the sentinel's own
  act::Sentinel sentinel_;
};

}  // namespace headroom::daemon
