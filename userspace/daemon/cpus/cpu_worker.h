// SPDX-License-Identifier: Apache-2.0
// CpuWorker: runs the CPU manager on a thread of its own: at once when cgroups are created or
// removed, when a cpuset is written or the manifests change, within kDriftPeriod of any other
// change, and by the configured period in any case. The loop never waits for it.
#pragma once

#include "base/file_io.h"
#include "config/config.h"
#include "daemon/cpus/cpu_manager.h"
#include "daemon/sources/runtime_container_names.h"
#include "judge/allocatable/amounts.h"
#include "judge/memory/memory_policy.h"
#include "observe/pod/cpuset_watch.h"
#include "report/view/cpus_view.h"

#include <headroom/result.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace headroom::daemon {

// RepackQueue: requests to repack CPUs, made on one thread and served on another.

struct RepackRequest {
  bool dry_run = false;
  std::promise<Result<std::string>> result;
};

class RepackQueue {
 public:
  // At most this many unserved requests; further ones are refused.
  static constexpr std::size_t kQueueSize = 8;

  // Any thread; never waits. The result is JSON, or an error.
  std::future<Result<std::string>> submit(bool dry_run) {
    RepackRequest request{.dry_run = dry_run, .result = {}};
    auto result = request.result.get_future();
    const std::lock_guard lock(mutex_);
    if (!wake_)
      request.result.set_value(failure("headroom.cpus.mode is off: no CPUs are assigned"));
    else if (requests_.size() == kQueueSize)
      request.result.set_value(failure("others are asking for the same: try again"));
    else
      requests_.push_back(std::move(request));
    if (wake_) wake_();
    return result;
  }

  // Requests are served from now on by the thread that `wake` wakes.
  void open(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  void close() {
    for (RepackRequest& request : close_queue())
      request.result.set_value(failure("headroomd is ending"));
  }
  std::vector<RepackRequest> take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }

 private:
  std::vector<RepackRequest> close_queue() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    return std::exchange(requests_, {});
  }

  std::mutex mutex_;
  std::function<void()> wake_;  // null: requests are not served
  std::vector<RepackRequest> requests_;
};

CpuManagerOptions cpu_manager_options_of(const config::Config& config);

// Errors of the configuration of CPU pinning on this machine; none if it is off.
config::Diagnostics cpu_config_errors(const config::Config& config);

// The same for memory pinning; one check is that reservedMemory equals the memory that is
// subtracted from the node's allocatable.
config::Diagnostics memory_config_errors(const config::Config& config, const Amounts& capacity);
config::Diagnostics memory_config_errors(const config::Config& config, const Amounts& capacity,
                                         const MemorySizes& sizes);

class CpuWorker {
 public:
  static constexpr std::chrono::milliseconds kDriftPeriod{500};

  CpuWorker(const std::filesystem::path& cgroup_root, const std::string& pods_cgroup,
            const std::filesystem::path& state_dir, CpuManagerOptions options,
            std::vector<Pod> manifests, std::shared_ptr<const KubeletContainerNames> kubelet_names,
            std::shared_ptr<report::PublishedCpusView> cpus_view,
            std::shared_ptr<RepackQueue> queue);
  ~CpuWorker();
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  // Any thread; neither waits.
  void reconfigure(CpuManagerOptions options);
  void set_declared_pods(std::vector<Pod> manifests);

  // A manager that writes to the cgroups below `cgroup_root`, for units through systemd.
  static CpuManager::Setup setup_of(std::shared_ptr<const KubeletContainerNames> kubelet_names,
                                    const std::filesystem::path& cgroup_root,
                                    const std::string& pods_cgroup,
                                    const std::filesystem::path& state_dir);

 private:
  struct Inbox {
    std::optional<CpuManagerOptions> options;
    std::optional<std::vector<Pod>> manifests;
    bool stop = false;
  };
  void post(const std::function<void(Inbox&)>& change);
  void wake() const;
  void run();
  bool take_inbox();
  void reconcile_once();
  void run_repacks();
  bool wait_for_change();

  CpuManager manager_;
  observe::CpusetWatch watch_;
  std::shared_ptr<report::PublishedCpusView> cpus_view_;
  std::shared_ptr<RepackQueue> queue_;
  std::chrono::nanoseconds period_;
  std::chrono::steady_clock::time_point due_{};
  std::chrono::milliseconds gap_;
  Fd wake_;
  std::mutex mutex_;
  Inbox inbox_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace headroom::daemon
