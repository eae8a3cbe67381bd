// SPDX-License-Identifier: Apache-2.0
// SlicesView: desired and actual settings of the cgroups between the root and the pods.
#pragma once

#include "judge/allocatable/allocatable_policy.h"
#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/node_cgroups.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// Progress of reclaiming memory so that a limit can be lowered below current usage.
struct LimitLoweringView {
  bool in_progress = false;
  // Reclaim was tried and usage is still too high: a pod must end or use less.
  bool late = false;
  std::uint64_t reached = 0, missed = 0;  // attempts that succeeded, and that failed
};

struct SliceView {
  NodeCgroup::Role role = NodeCgroup::Role::kPods;
  std::string path{};  // below the cgroup root: "/kubepods.slice"
  Amounts share{};     // of the node's resources; empty for a QoS class
  bool exists = false;
  std::vector<std::string> missing_controllers{};
  CgroupValues desired{};
  CgroupValues actual{};   // of the settings that are desired
  CgroupValues differs{};  // desired values of settings that differ
  std::optional<Bytes> memory{};
  std::optional<Tasks> tasks{};
  std::optional<double> cpus{};  // in use, since the previous check
  // Usage above the desired memory.max, which is set after usage falls below it.
  std::optional<Bytes> excess_usage{};
  LimitLoweringView lowering{};
  std::map<std::string, std::uint64_t> drift{};  // setting, or "slice" → how often it differed
  std::string error{};                           // why it is not corrected; "": it is
};

// Immutable.
struct SlicesView {
  SlicesMode mode = SlicesMode::kOff;  // in force
  std::vector<SliceView> slices{};
  std::string error{};  // why none is corrected
  std::uint64_t calls = 0, calls_failed = 0;
  std::chrono::nanoseconds calls_waited{0};  // for systemd's answers
};
using SlicesRef = std::shared_ptr<const SlicesView>;

// Amounts in bytes, tasks and CPUs; "max" where there is no limit, null where it is not known.
nlohmann::ordered_json slices_json(const SlicesView& view);

}  // namespace headroom::report
