// SPDX-License-Identifier: Apache-2.0
// Taking CPUs: which ones a request gets out of those available, by the kubelet's static policy
// (kubelet: cm/cpumanager/cpu_assignment.go).
#pragma once

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

namespace headroom {

// In which order single CPUs are taken once whole groups no longer fit.
enum class CpuOrder : std::uint8_t {
  kPacked,  // whole cores first, then core by core
  kSpread,  // no core is preferred: ascending within each socket
};

struct TakeRules {
  CpuOrder order = CpuOrder::kPacked;
  bool prefer_uncore = false;  // whole uncore caches, or one alone, before single cores
  bool across_numa = false;    // evenly over as few NUMA nodes as hold the request
  int group = 1;               // with across_numa: CPUs that are handed out together
};

// Why a request cannot be met.
struct NotEnoughCpus {
  int requested = 0;
  int available = 0;
  std::string message() const;  // the kubelet's
  friend bool operator==(const NotEnoughCpus&, const NotEnoughCpus&) = default;
};

// Work done: CPUs, groups and subsets looked at. What a test bounds instead of time.
struct WorkCounter {
  std::uint64_t steps = 0;
};

using TakeResult = tl::expected<CpuSet, NotEnoughCpus>;

// Exactly `count` of `available`, always the same ones for the same arguments. A group of CPUs (a
// core, a cache, a node) is free when all of it is available: the kubelet to 1.37 compares with an
// average and hands out what is not there on hybrid machines (kubernetes/kubernetes 140495).
TakeResult take(const Topology& topology, const CpuSet& available, int count,
                const TakeRules& rules, WorkCounter* work = nullptr);

}  // namespace headroom
