// SPDX-License-Identifier: Apache-2.0
// FailsafeList: keeps the list of pods that the sentinel kills if the loop hangs.
#pragma once

#include "act/host_actuator.h"
#include "act/kill/sentinel.h"
#include "observe/node/node_source.h"

#include <headroom/ports.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headroom::daemon {

class FailsafeList {
 public:
  // The ranking changes slowly: ranking every pod at each sweep would be wasted.
  static constexpr Duration kPeriod = std::chrono::seconds(5);
  static constexpr std::size_t kMax = 16;

  // `actuator` must outlive it.
  FailsafeList(act::HostActuator& actuator, const std::filesystem::path& cgroup_root);

  void reconfigure(const Policy& policy);
  // After every turn. Returns the pods in the order in which they would be evicted for memory, if
  // it ranked them again in this turn; else nothing. Valid until the next call.
  std::span<const Decision> update(const Snapshot& snapshot, const Verdict& verdict);

  // The pod that a hard threshold of memory would evict now; null: none, or not yet ranked.
  const std::shared_ptr<const Pod>& first() const { return first_; }

  // The loop runs, and its next turn is due by then.
  void beat(Instant due) { sentinel_.beat(due); }
  void collect(std::vector<Outcome>& ended) { sentinel_.collect(ended); }
  std::uint64_t hangs() const { return sentinel_.hangs(); }
  std::uint64_t kills() const { return sentinel_.kills(); }

 private:
  act::HostActuator& actuator_;
  Policy policy_;
  std::optional<Instant> updated_at_;
  std::vector<Decision> list_;
  std::shared_ptr<const Pod> first_;
  observe::NodeSource memory_;  // read by the sentinel's thread only
  act::Sentinel sentinel_;
};

}  // namespace headroom::daemon
