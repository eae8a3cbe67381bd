// SPDX-License-Identifier: Apache-2.0
// PodCgroupTree: the cgroups below the pods' cgroup for which CPUs and NUMA nodes are set, and what
// each has of them.
//
// Guaranteed pods are directly below the root and may have exclusive CPUs; everything else there
// (the tiers, and other cgroups) shares the pool, and so does all inside it.
#pragma once

#include <headroom/cpuset.h>
#include <headroom/topology.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

struct ContainerCgroup {
  std::string path;     // from the cgroup root on
  std::string runtime;  // "cri-containerd", "" for a plain one
  std::string name;     // the runtime's id, or the directory's name: "web.service"
};

struct PodCgroup {
  std::string uid;
  std::string path;
  bool populated = false;
  std::vector<ContainerCgroup> containers;
};

// A pod of a tier: its CPUs are the tier's.
struct SharedPoolPod {
  std::string uid;
  std::string path;
};

struct PodTree {
  std::vector<std::string> roots;               // that are there
  std::vector<std::string> sharing;             // tiers, and others
  std::vector<SharedPoolPod> shared_pool_pods;  // in them
  std::vector<PodCgroup> pods;                  // Guaranteed ones
};

bool is_populated(const std::filesystem::path& cgroup_root, const std::string& path);

PodTree read_pod_tree(const std::filesystem::path& cgroup_root, std::string_view pods_cgroup);

// What tasks in it may run on: its own cpuset.cpus.effective, or, where the controller is not
// enabled, that of the nearest cgroup above. Absent: it is gone, or nothing can be read.
std::optional<CpuSet> cpus_of_cgroup(const std::filesystem::path& cgroup_root,
                                     const std::string& path);

// The NUMA nodes that its memory comes from: the same of cpuset.mems.effective.
std::optional<NodeSet> nodes_of_cgroup(const std::filesystem::path& cgroup_root,
                                       const std::string& path);

// The cgroup's own cpuset.mems; empty: it has no limit of its own, or no such file. Absent: it is
// gone.
std::optional<NodeSet> own_nodes_of_cgroup(const std::filesystem::path& cgroup_root,
                                           const std::string& path);

}  // namespace headroom::observe
