// SPDX-License-Identifier: Apache-2.0
// CpusView: the CPUs of each container, for headroomctl (as JSON) and the metrics. The memory of
// NUMA nodes that the same manager assigns is part of it, and has JSON of its own.
#pragma once

#include "judge/cpuset/cpu_admission.h"
#include "judge/cpuset/repack.h"
#include "report/view/memory_view.h"

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::report {

// RepackView: the moves of a repacking of exclusive CPUs and their benefit, as JSON.

struct RepackedContainer {
  std::string pod_namespace;  // "": not known
  std::string pod;            // its name; its uid if the name is unknown
  std::string uid;
  std::string container;
  CpuSet from{};  // empty: it used the shared pool
  CpuSet to{};
  CpuSet runs_on{};  // cpuset of its cgroup afterwards; empty: no cgroup, or nothing was done
  CpuSpread before{}, after{};
};

struct RepackView {
  bool dry_run = false;
  int moved_cpus = 0;
  PackingScore before{}, after{};
  std::vector<RepackedContainer> containers{};
};

std::string repack_json(const RepackView& view);

struct ContainerCpuView {
  std::string pod_namespace;  // "": not known
  std::string pod;            // its name; its uid if the name is unknown
  std::string uid;
  std::string container;
  int wanted = 0;
  CpuSet cpus{};          // fewer than wanted if some are offline; none: refused
  CpuSet runs_on{};       // cpuset of its cgroup; empty: no cgroup (yet)
  std::string refusal{};  // the reason; "": not refused
  // cpuset.cpus.partition of its pod, or why it is not isolated as configured.
  std::string partition = "member";
  // Its CPUs are what other containers leave of its pod's pool; wanted is 0.
  bool shares_in_pod = false;
};

// As the kubelet counts: of the containers, or the pods in the scope of the pod, that got CPUs,
// those whose CPUs are aligned because the configuration wants it, and those that were refused for
// it.
struct AlignmentCounts {
  std::uint64_t numa_node = 0, numa_node_failed = 0;
  std::uint64_t physical_cpu = 0, physical_cpu_failed = 0;
  std::uint64_t uncore_cache = 0;
};

struct CpusView {
  std::string_view mode{};    // "observe", "enforce"
  std::string_view policy{};  // "none", "static"
  std::vector<CpuLocation> places{};
  CpuSet reserved{};
  CpuSet shared{};
  CpuSet offline{};
  CpuSet isolated{};
  CpuSet nohz_full{};
  std::vector<ContainerCpuView> containers{};
  // CPUs and requests of the shared pool; absent: no container has exclusive CPUs.
  std::optional<SharedPool> pool{};
  int pool_unknown = 0;              // pods in it without a manifest: their requests are unknown
  bool pool_limit_enforced = false;  // containers that would leave it too small are refused
  std::string error{};               // why CPU pinning does not work; "": it works

  // As the kubelet counts: containers to be pinned, and those that could not be.
  std::uint64_t pinning_requests = 0;
  std::uint64_t pinning_errors = 0;
  std::uint64_t pool_refusals =
      0;  // pods refused exclusive CPUs because the shared pool needs them
  std::uint64_t topology_requests = 0;  // pods to be given CPUs
  std::uint64_t topology_errors = 0;    // pods that were refused them
  TopologyScope topology_scope = TopologyScope::kContainer;
  AlignmentCounts aligned{};
  // headroom's own counters.
  std::uint64_t writes = 0;    // of cpuset.cpus
  std::uint64_t failed = 0;    // writes that were refused or had no effect
  std::uint64_t repaired = 0;  // CPU sets that another program had changed
  bool unsaved = false;        // the state file is out of date

  std::optional<MemoryView> memory{};  // absent: memoryManagerPolicy is None
};

// Passes the latest view from the CPU manager to its readers. Used on any thread.
class PublishedCpusView {
 public:
  void publish(CpusView view) {
    auto latest_view = std::make_shared<const CpusView>(std::move(view));
    const std::lock_guard lock(mutex_);
    view_ = std::move(latest_view);
  }
  // Null: CPU pinning is off.
  std::shared_ptr<const CpusView> latest() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    view_.reset();
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const CpusView> view_;
};

std::string cpus_json(const CpusView& view);

}  // namespace headroom::report
