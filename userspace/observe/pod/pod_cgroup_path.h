// SPDX-License-Identifier: Apache-2.0
// PodCgroupPath: which cgroups are pods and which are containers, by their paths alone.
//
// The kubelet nests them as root / QoS tier / pod / container and spells the names in one of two
// ways, by its cgroup driver:
// systemd: /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice
// cgroupfs: /kubepods/burstable/pod<uid>
// Guaranteed pods have no tier. Under systemd a dash separates slices, so those of the uid become
// underscores.
#pragma once

#include "base/cgroup_directory.h"

#include <headroom/cpuset.h>
#include <headroom/pod.h>
#include <headroom/topology.h>
#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::observe {

// PodCgroupTree: the cgroups below the pods' cgroup for which CPUs and NUMA nodes are set, and what
// each has of them.
//
// Guaranteed pods are directly below the root and may have exclusive CPUs; everything else there
// (the tiers, and other cgroups) shares the pool, and so does all inside it.

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
  // Of these, of their containers, and of the cgroups above, by path: each was read before
  // anything else of its cgroup.
  std::map<std::string, CgroupId> ids;

  // By the path it had when the tree was read.
  SeenCgroup cgroup(const std::string& path) const {
    const auto id = ids.find(path);
    return {.path = path, .id = id == ids.end() ? CgroupId{} : id->second};
  }
};

bool is_populated(const std::filesystem::path& cgroup_root, const std::string& path);

PodTree read_pod_tree(const std::filesystem::path& cgroup_root, std::string_view pods_cgroup);

// What tasks in it may run on: its own cpuset.cpus.effective, or, where the controller is not
// enabled, that of the nearest cgroup above. Absent: it is gone, or nothing can be read.
std::optional<CpuSet> cpus_of_cgroup(const std::filesystem::path& cgroup_root,
                                     const std::string& path);
// Another cgroup at the path is not read.
std::optional<CpuSet> cpus_of_cgroup(const std::filesystem::path& cgroup_root,
                                     const SeenCgroup& cgroup);

// The NUMA nodes that its memory comes from: the same of cpuset.mems.effective.
std::optional<NodeSet> nodes_of_cgroup(const std::filesystem::path& cgroup_root,
                                       const std::string& path);

// The cgroup's own cpuset.mems; empty: it has no limit of its own, or no such file. Absent: it is
// gone.
std::optional<NodeSet> own_nodes_of_cgroup(const std::filesystem::path& cgroup_root,
                                           const std::string& path);
std::optional<NodeSet> own_nodes_of_cgroup(const std::filesystem::path& cgroup_root,
                                           const SeenCgroup& cgroup);

struct PodCgroupPath {
  enum class Level : std::uint8_t {
    kPod,             // the pod-level cgroup
    kContainer,       // directly below it
    kBelowContainer,  // deeper: a container's own business
  };
  Level level = Level::kPod;
  std::string uid;  // dashes restored
  QosClass qos = QosClass::kGuaranteed;

  // Of a container, as views into the path that was asked about. "cri-containerd-<id>.scope" is
  // {"cri-containerd", id}, "crio-<id>", as the cgroupfs driver has it, {"crio", id}; a plain
  // directory is {"", its name}, containerd's "<id>" too; so is a unit of another kind, suffix and
  // all ("web.service"), and a container's monitor.
  std::string_view runtime;
  std::string_view container;
};

class PodCgroupParser {
 public:
  // Below the cgroup root: "kubepods.slice", "kubelet.slice/kubelet-kubepods.slice", "kubepods". A
  // name that ends in .slice is of the systemd driver. For the kubelet's two own names either finds
  // both, for a configuration is often silent on the driver.
  explicit PodCgroupParser(std::string_view pods_root);

  // `path` from the cgroup root on, with or without the leading slash. Nothing: no part of a pod.
  std::optional<PodCgroupPath> place(std::string_view path) const;

 private:
  struct Root {
    std::string path;  // "/kubepods.slice"
    std::string stem;  // "kubepods": what the names of all slices below begin with
    bool systemd = false;
  };
  void add_root(std::string_view path);

  std::vector<Root> roots_;
};

// "crio-conmon-<id>.scope": the monitor of a container, and no container.
bool is_conmon(std::string_view name);

// Forms the kubelet gives: a UUID, or the 32 hexadecimal digits of a static pod.
bool is_uuid(std::string_view uid);
bool is_static_uid(std::string_view uid);

}  // namespace headroom::observe
