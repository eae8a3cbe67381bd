// SPDX-License-Identifier: Apache-2.0
// SlicesView: the cgroups between the root and the pods, as they should be and as they are.
#pragma once

#include "judge/allocatable/amounts.h"
#include "judge/allocatable/cgroup/cgroup_values.h"
#include "judge/allocatable/node_cgroups.h"
#include "judge/allocatable/slices_mode.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headroom::report {

// How what is in use is brought below a limit that is to be lowered.
struct LimitLoweringView {
  bool in_progress = false;
  // It was tried, and too much is still in use: a pod must end, or use less.
  bool late = false;
  std::uint64_t reached = 0, missed = 0;  // tries that brought it there, and that did not
};

struct SliceView {
  NodeCgroup::Role role = NodeCgroup::Role::kPods;
  std::string path{};  // below the cgroup root: "/kubepods.slice"
  Amounts share{};     // of the node's resources, meant for it; empty for a tier
  bool exists = false;
  std::vector<std::string> missing_controllers{};  // controllers
  CgroupValues desired{};
  CgroupValues actual{};   // of the knobs that are desired
  CgroupValues differs{};  // desired, of those that are otherwise
  std::optional<Bytes> memory{};
  std::optional<Tasks> tasks{};
  std::optional<double> cpus{};  // in use, since the look before
  // In use, more than its memory.max is to be: it is set when less is.
  std::optional<Bytes> excess_usage{};
  LimitLoweringView lowering{};
  std::map<std::string, std::uint64_t> drift{};  // knob, or "slice" → how often it was otherwise
  std::string error{};                           // why it is not put right; "" if it is
};

// Never changed once made.
struct SlicesView {
  SlicesMode mode = SlicesMode::kOff;  // in force
  std::vector<SliceView> slices{};
  std::string error{};  // why none is put right
  std::uint64_t calls = 0, calls_failed = 0;
  std::chrono::nanoseconds calls_waited{0};  // for systemd's answers
};
using SlicesRef = std::shared_ptr<const SlicesView>;

// Amounts in bytes, tasks and CPUs; "max" where there is no limit, null where it is not known.
nlohmann::ordered_json slices_json(const SlicesView& view);

}  // namespace headroom::report
