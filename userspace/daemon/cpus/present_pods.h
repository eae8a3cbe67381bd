// SPDX-License-Identifier: Apache-2.0
// PresentPods: the Guaranteed pods whose cgroups exist, in the order they came, each with its
// description if there is one.
#pragma once

#include "daemon/sources/pod_containers.h"
#include "judge/cpuset/policy/cpu_state.h"
#include "judge/memory/memory_state.h"
#include "judge/resources/pod_level.h"
#include "observe/pod/pod_cgroup_path.h"

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headroom::daemon {

struct PresentPod {
  observe::PodCgroup cgroup;
  // With the exclusive CPUs of its admission at least. Null: it uses the shared pool.
  std::shared_ptr<const Pod> pod;
  std::multimap<std::string, std::string> containers;  // name → path
};

class PresentPods {
 public:
  PresentPods(std::filesystem::path cgroup_root, std::string pods_cgroup,
              IdentifyContainer identify)
      : cgroup_root_(std::move(cgroup_root)),
        pods_cgroup_(std::move(pods_cgroup)),
        identify_(std::move(identify)) {}

  void set_declared(std::vector<Pod> manifests);
  void read_tree() { tree_ = observe::read_pod_tree(cgroup_root_, pods_cgroup_); }
  // What is known to be the pods'.
  struct Assigned {
    const CpuState& cpus;
    const PodMemory& memory;
    const MemoryPools& memory_pools;
  };
  // Updates from the tree. Returns the uids of new pods.
  std::vector<std::string> update(const Assigned& assigned, PodLevelMode mode);

  const observe::PodTree& tree() const { return tree_; }
  const std::vector<PresentPod>& all() const { return present_; }
  bool is_present(const std::string& uid) const { return arrivals_.contains(uid); }
  // Null: the pod has no manifest.
  const std::shared_ptr<const Pod>& manifest(const std::string& uid) const;
  // The name of each container that is known only by its id, as in the oldest state files.
  std::map<std::string, std::string> names_by_path(const observe::PodCgroup& cgroup) const;

  // The sum of requests for the shared pool of the pods in the QoS tiers.
  MilliCpu shared_pool_requests() const;
  // The number of pods in the shared pool without a manifest. Their requests are unknown and do not
  // prevent a container from getting exclusive CPUs.
  int without_request() const;

 private:
  std::shared_ptr<const Pod> pod_of(const observe::PodCgroup& cgroup, const Assigned& assigned,
                                    PodLevelMode mode) const;

  std::filesystem::path cgroup_root_;
  std::string pods_cgroup_;
  IdentifyContainer identify_;
  std::map<std::string, std::shared_ptr<const Pod>, std::less<>> manifests_;  // by uid
  std::map<std::string, std::uint64_t, std::less<>> arrivals_;                // by uid
  std::uint64_t next_arrival_ = 0;
  observe::PodTree tree_;
  std::vector<PresentPod> present_;  // in the order they came
};

}  // namespace headroom::daemon
