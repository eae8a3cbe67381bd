// SPDX-License-Identifier: Apache-2.0
// CpuKeeper: deals out CPUs on a thread of its own: at once when cgroups come and go, when somebody
// writes a cpuset or the manifests change, within kDriftPeriod whatever else changed, and by the
// configured period in any case. The loop never waits for it.
#pragma once

#include "base/fd.h"
#include "config/config.h"
#include "daemon/cpu_manager.h"
#include "daemon/repack_desk.h"
#include "daemon/told_names.h"
#include "observe/cpuset_watch.h"
#include "report/cpus_view.h"

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

CpuTerms cpu_terms_of(const config::Config& config);

// What this machine objects to in the configuration of CPU pinning; nothing where it is off.
config::Complaints cpu_objections(const config::Config& config);

class CpuKeeper {
 public:
  static constexpr std::chrono::milliseconds kDriftPeriod{500};

  CpuKeeper(const std::filesystem::path& cgroup_root, const std::string& pods_cgroup,
            CpuTerms terms, std::vector<Pod> manifests, std::shared_ptr<const ToldNames> told,
            std::shared_ptr<report::CpuBoard> board, std::shared_ptr<RepackDesk> desk);
  ~CpuKeeper();
  CpuKeeper(const CpuKeeper&) = delete;
  CpuKeeper& operator=(const CpuKeeper&) = delete;

  // Any thread; neither waits.
  void adopt(CpuTerms terms);
  void describe(std::vector<Pod> manifests);

 private:
  struct Inbox {
    std::optional<CpuTerms> terms;
    std::optional<std::vector<Pod>> manifests;
    bool stop = false;
  };
  static CpuManager::Setup setup_of(std::shared_ptr<const ToldNames> told,
                                    const std::filesystem::path& cgroup_root,
                                    const std::string& pods_cgroup);
  void put(const std::function<void(Inbox&)>& change);
  void wake() const;
  void run();
  bool take_orders();
  void turn();
  void serve();
  bool sleep();

  CpuManager manager_;
  observe::CpusetWatch watch_;
  std::shared_ptr<report::CpuBoard> board_;
  std::shared_ptr<RepackDesk> desk_;
  std::chrono::nanoseconds period_;
  std::chrono::steady_clock::time_point due_{};
  std::chrono::milliseconds gap_;
  Fd wake_;
  std::mutex mutex_;
  Inbox inbox_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace headroom::daemon
