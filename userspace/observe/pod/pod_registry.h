// SPDX-License-Identifier: Apache-2.0
// PodRegistry: the pods of this node, each with its cgroup.
//
// A manifest describes a pod, the cgroup tree shows that it exists; the uid in the cgroup's name
// joins them. A pod-level cgroup without a manifest is a pod too, described by what the tree shows:
// it still uses memory.
//
// A pod may have two cgroups, by the names of both cgroup drivers: a kubelet whose driver was
// changed leaves the old ones, and that of 1.20 makes empty ones by cgroupfs's names beside
// systemd's. Those with processes are shown; of empty ones the oldest, if there is no other.
//
// A reload or a new limit replaces a Pod only if its description differs, so pointers may be kept
// and compared. read() allocates nothing while nothing changes.
#pragma once

#include "observe/pod/pod_cgroup_path.h"

#include <headroom/bpf/abi.h>
#include <headroom/pod.h>
#include <headroom/snapshot.h>
#include <headroom/units.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::observe {

class PodRegistry {
 public:
  explicit PodRegistry(PodCgroupParser layout) : layout_(std::move(layout)) {}

  // All declared pods, with distinct uids; replaces the earlier ones. For pods of a kubelet the
  // last description holds until their cgroup is gone: a kubelet that just restarted knows no pods
  // until the API server has answered it. `kubelet_describes`: a pod without a manifest will get
  // one.
  void set_declared_pods(std::vector<Pod> manifests, const std::set<std::string>& of_kubelet = {},
                         bool kubelet_describes = false);

  // The cgroup inventory's events. False: the cgroup is not a pod's own, and is ignored.
  bool add_cgroup(CgroupId id, std::string_view path);
  void gone(CgroupId id);

  // Every pod that has a cgroup, with this instant's record of it: `record_of(CgroupId)` gives a
  // const hr_record* or null. The span is valid until the next call of this function or of one
  // above. Pods known from the tree alone get their request and limit here.
  template <class RecordOf>
  std::span<const PodReading> read(RecordOf&& record_of) {
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      readings_[i].record = record_of(readings_[i].cgroup);
      if (readings_[i].record) update_limits(i, *readings_[i].record);
    }
    return shown();
  }

  // As read(), if no record has moved since: reads only the records for which
  // `is_new(const hr_record*)` is true.
  template <class IsNew>
  std::span<const PodReading> read_again(IsNew&& is_new) {
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      const hr_record* record = readings_[i].record;
      if (record && is_new(record)) update_limits(i, *record);
    }
    return shown();
  }

  // The pod's processes show that it is Guaranteed or node-critical, or no longer do.
  void show_protected(CgroupId id, bool is_protected);

  // What is known of the pod's containers and processes; null: not read. `parts` must outlive the
  // registry.
  void set_parts(CgroupId id, const PodParts* parts);
  // The pod's disk usage, until the next call for the same pod.
  void measured(CgroupId id, std::shared_ptr<const DiskUsage> usage);
  // The pod with this pod-level cgroup; null if there is none.
  std::shared_ptr<const Pod> find(CgroupId id) const {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : readings_[found->second].pod;
  }

  struct ManifestCounts {
    std::size_t with_manifest = 0;     // a manifest and a cgroup
    std::size_t without_manifest = 0;  // a cgroup alone
    std::size_t without_cgroup = 0;    // a manifest alone
  };
  ManifestCounts manifest_counts() const;

 private:
  // The cgroups of one uid.
  struct Cgroups {
    std::size_t count = 0;
    // As of the last records, if there are several.
    CgroupId oldest{};
    bool populated = false;
  };
  // What the cgroup tree shows of a pod; in the order of readings_.
  struct Tree {
    std::string uid;
    QosClass qos;
    Cgroups* cgroups = nullptr;  // of the uid
    // The last valid values; HR_UNKNOWN: none so far.
    hr_u64 memory_min = HR_UNKNOWN;
    hr_u64 memory_low = HR_UNKNOWN;
    hr_u64 memory_max = HR_UNKNOWN;
    std::shared_ptr<const DiskUsage> disk;  // readings_ point to it
    bool of_kubelet = false;                // in its last description
    bool is_protected = false;              // as its processes show
  };

  std::span<const PodReading> shown();
  void count_cgroup(Tree& tree);
  void forget_cgroup(const Tree& tree);
  void update_limits(std::size_t index, const hr_record& record);
  void assign_pod(std::size_t index, std::shared_ptr<const Pod> pod);
  void settle_description(std::size_t index);
  std::shared_ptr<const Pod> with_manifest(std::string_view uid) const;
  static Pod pod_of(const Tree& tree);

  PodCgroupParser layout_;
  std::map<std::string, std::shared_ptr<const Pod>, std::less<>> manifests_;  // by uid
  std::set<std::string> of_kubelet_;
  bool kubelet_describes_ = false;
  std::vector<PodReading> readings_;
  std::vector<Tree> trees_;
  std::unordered_map<CgroupId, std::size_t> index_;   // into readings_ and trees_
  std::unordered_map<std::string, Cgroups> cgroups_;  // by uid; the addresses are kept
  std::size_t several_ = 0;                           // uids with more than one
  std::vector<PodReading> shown_;                     // if there are any
};

}  // namespace headroom::observe
