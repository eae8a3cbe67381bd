// SPDX-License-Identifier: Apache-2.0
// DiskMeter: what every pod's files take, measured by a thread of its own, at idle priority.
//
// The loop never waits for it: it says which pods there are and takes what has been measured since.
#pragma once

#include "base/clock.h"
#include "base/pod_paths.h"
#include "observe/node/directory_size.h"

#include <headroom/disk_usage.h>
#include <headroom/eviction_unit.h>
#include <headroom/pod.h>
#include <headroom/units.h>

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace headroom::observe {

// Writable layers of running containers: the upper directory of the overlay a container's processes
// have for a root, whichever runtime mounted it.

// From the text of /proc/PID/mountinfo; absent: the root is no overlay.
std::optional<std::string> upper_directory(std::string_view mountinfo);

// Those of one pod. What a first process's root is mounted from hardly changes while it is the same
// process, so its table of mounts, which is long, is read seldom; and a cgroup that has given the
// same answer a few times is asked seldom. /proc/PID/root, which names the mount at once, needs
// CAP_SYS_PTRACE.
class WritableLayers {
 public:
  struct Layer {
    std::string cgroup;     // the first one whose processes have it
    std::string directory;  // the overlay's upper directory
    friend bool operator==(const Layer&, const Layer&) = default;
  };

  // The writable layers of the containers whose cgroup directories are given, in that order, each
  // once. Empty if their processes share the host's root.
  std::vector<Layer> of(const std::vector<std::string>& cgroups);

 private:
  // A cgroup is asked in every call until the answer was the same this many times (fewer if it has
  // no process, since one may still start), then in one call of kSettledReadPeriod; the mounts of
  // the same process are then read in one call of kMountsReadPeriod.
  static constexpr unsigned kSettled = 1, kSettledEmpty = 2, kSettledReadPeriod = 8,
                            kMountsReadPeriod = 64;

  struct Known {
    std::string cgroup;
    std::optional<ProcessIdentity> first;  // absent: no process of this pid namespace
    std::optional<std::string> upper;
    unsigned same = 0;  // how often the answer was this again

    bool settled() const { return same >= (first ? kSettled : kSettledEmpty); }
  };

  Known refresh(const std::string& cgroup, const Known* before) const;

  std::vector<Known> known_;  // of the last call
  unsigned calls_ = 0;
};

// What is measured of one pod, right now.
struct DiskTarget {
  std::shared_ptr<const Pod> pod;  // never null
  CgroupId cgroup;
  std::vector<std::string> containers;  // their cgroups' directories: "/sys/fs/cgroup/…"
};

struct DiskMeterOptions {
  PodPaths paths;
  Duration period = std::chrono::seconds(60);  // between two measurements of a pod
  WalkRate rate{};
  bool host_paths = false;  // hostPath volumes count (a pod may mount all of "/")
  Instant (*clock)() = now;
};

// Measures each part of one pod. A part that cannot be measured is unknown and counted.
DiskUsage measure(const DiskTarget& target, WritableLayers& layers, const DiskMeterOptions& options,
                  WalkRate rate, const std::stop_token& stop, std::atomic<std::uint64_t>& failed);

class DiskMeter {
 public:
  struct Measured {
    CgroupId cgroup;
    std::shared_ptr<const DiskUsage> usage;
  };

  explicit DiskMeter(DiskMeterOptions options);

  // The pods there are from now on; new ones are measured first.
  void set_targets(std::vector<DiskTarget> targets);
  // Measures again at once, and faster, because a disk is filling. Holds for a few seconds.
  void measure_urgently();
  // The measurements since the last call; a pod measured twice is listed twice, the latest last.
  // Costs nothing if there are none.
  std::vector<Measured> take();

  // Parts of pods that could not be measured, since the start.
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  struct QueueEntry {
    DiskTarget target;
    std::shared_ptr<WritableLayers> layers;  // the thread's alone
    std::optional<Instant> measured;         // when its last measurement began
  };

  void run(const std::stop_token& stop);
  bool is_urgent(Instant at) const;
  std::optional<Instant> next_due(Instant at) const;
  bool is_measurement_due(Instant at) const;
  Duration time_until_due(Instant at) const;
  void set_measured(const DiskTarget& target, Instant measured);

  const DiskMeterOptions options_;
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<bool> has_results_{false};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded too. Pods never measured come first, then those measured longest ago.
  std::list<QueueEntry> queue_;
  std::vector<Measured> results_;
  Instant urgent_until_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace headroom::observe
