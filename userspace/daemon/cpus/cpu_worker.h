// SPDX-License-Identifier: Apache-2.0
// CpuWorker: runs the CPU manager on a thread of its own: at once when cgroups come and go, when a
// cpuset is written or the manifests change, within kDriftPeriod of any other change, and by the
// configured period in any case. The loop never waits for it.
#pragma once

#include "base/fd.h"
#include "config/config.h"
#include "daemon/cpus/cpu_manager.h"
#include "daemon/cpus/repack_queue.h"
#include "daemon/sources/kubelet_container_names.h"
#include "observe/pod/cpuset_watch.h"
#include "report/view/cpus_view.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace headroom::daemon {

CpuManagerOptions cpu_manager_options_of(const config::Config& config);

// What this machine objects to in the configuration of CPU pinning; nothing where it is off.
config::Diagnostics cpu_config_errors(const config::Config& config);

class CpuWorker {
 public:
  static constexpr std::chrono::milliseconds kDriftPeriod{500};

  CpuWorker(const std::filesystem::path& cgroup_root, const std::string& pods_cgroup,
            CpuManagerOptions options, std::vector<Pod> manifests,
            std::shared_ptr<const KubeletContainerNames> kubelet_names,
            std::shared_ptr<report::PublishedCpusView> cpus_view,
            std::shared_ptr<RepackQueue> queue);
  ~CpuWorker();
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  // Any thread; neither waits.
  void reconfigure(CpuManagerOptions options);
  void set_declared_pods(std::vector<Pod> manifests);

 private:
  struct Inbox {
    std::optional<CpuManagerOptions> options;
    std::optional<std::vector<Pod>> manifests;
    bool stop = false;
  };
  static CpuManager::Setup setup_of(std::shared_ptr<const KubeletContainerNames> kubelet_names,
                                    const std::filesystem::path& cgroup_root,
                                    const std::string& pods_cgroup);
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
