// SPDX-License-Identifier: Apache-2.0
// HostObserver: this host, as snapshots: the node's signals, every cgroup, the pods among them.
#pragma once

#include "observe/cgroup_files.h"
#include "observe/cgroup_source.h"
#include "observe/disk_meter.h"
#include "observe/inventory.h"
#include "observe/node_source.h"
#include "observe/parts_reader.h"
#include "observe/pod_registry.h"
#include "observe/pressure_window.h"
#include "observe/wait_source.h"

#include <headroom/ports.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace headroom::observe {

class HostObserver final : public Observer {
 public:
  struct Parts {
    NodeSource node;
    std::unique_ptr<CgroupSource> cgroups;
    Inventory inventory;
    std::string pods_cgroup;                      // "kubepods.slice", below the cgroup root
    std::unique_ptr<WaitSource> waits = nullptr;  // null: not watched
    Duration pressure_window = std::chrono::seconds(1);
    std::int64_t cpus = 1;  // online
    Instant (*clock)() = now;
    std::unique_ptr<DiskMeter> disks = nullptr;  // null: pods' disk usage stays unknown
    std::string cgroup_root = {};  // "/sys/fs/cgroup": where disks look for containers
    ImageStorage images = {};
    std::string proc = "/proc";
    ContainerAt container_at = nullptr;  // null: parts of pods have no requests
  };
  explicit HostObserver(Parts parts);

  Snapshot look(Depth depth) override;
  void measure_disks() override;

  // What the pods' manifests say, from now on.
  void describe(std::vector<Pod> pods, const std::set<std::string>& of_kubelet = {},
                bool kubelet_describes = false) {
    registry_.describe(std::move(pods), of_kubelet, kubelet_describes);
    retarget_ = repart_ = true;
  }

  // The inside of pods is read as far as this policy asks, from now on.
  void heed(const Policy& policy) {
    if (parts_reader_.want(
            {.unit = policy.eviction_unit, .limits = policy.ladder.stuck_after.has_value()}))
      repart_ = true;
  }

  // memory.pressure is taken over this, from now on.
  void take_pressure_over(Duration window) { pressure_ = PressureWindow(window, parts_.cpus); }

  const Inventory& inventory() const { return parts_.inventory; }
  const CgroupSource& source() const { return *parts_.cgroups; }
  // The pod the cgroup lies in, however deep; null: in none, or not known (yet).
  std::shared_ptr<const Pod> pod_of(CgroupId id) const;
  PodRegistry::Census census() const { return registry_.census(); }
  // Readings that could not be had, since the start: passes that failed, a signal without a value.
  std::uint64_t missing_readings() const {
    return missing_ + (parts_.disks ? parts_.disks->failed() : 0) +
           (parts_.waits ? parts_.waits->failed() : 0);
  }
  std::uint64_t passes() const { return passes_; }
  // The last failed pass, in words; empty after a good one.
  const std::string& trouble() const { return trouble_; }

 private:
  void look_at_cgroups(Snapshot& snapshot);
  void look_inside(Snapshot& snapshot);
  void look_at_disks(std::span<const PodReading> pods);
  void tell_registry(std::span<const hr_record> records);
  void read_pods_cgroup(std::span<const hr_record> records, Instant at);
  void look_at_pods_cgroup();
  std::span<const PodReading> read_pods(std::span<const hr_record> records, const SweepNews& news,
                                        bool same);
  void read_scores(std::span<const PodReading> pods, Instant at);
  const hr_record* record_of(std::span<const hr_record> records, CgroupId id) const;

  Parts parts_;
  PodRegistry registry_;
  PartsReader parts_reader_;
  bool repart_ = true;  // it knows other cgroups or pods than there are
  PressureWindow pressure_;
  Observations observations_;  // as last sampled; slow ones keep their older time
  Instant filesystems_read_;
  Instant scores_read_;
  std::unordered_map<CgroupId, bool> awaited_;  // pods without a description → protected
  std::vector<CgroupId> told_;                  // to the registry, sorted
  std::optional<CgroupId> pods_id_;             // of the pods' cgroup, while there is one
  std::unordered_map<std::uint64_t, std::uint32_t> positions_;  // id → index of its record
  // The pods' cgroup has a limit of its own, so its signal is read with the node's.
  std::optional<CgroupFiles> pods_files_;
  bool retarget_ = true;     // the disk meter knows other pods than there are
  std::uint32_t order_ = 0;  // SweepNews::order
  std::uint64_t missing_ = 0;
  std::uint64_t passes_ = 0;
  std::string trouble_;
};

}  // namespace headroom::observe
