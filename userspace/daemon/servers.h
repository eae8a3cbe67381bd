// SPDX-License-Identifier: Apache-2.0
// Servers: the threads that serve D-Bus, HTTP and the node status file. The daemon runs without
// those that cannot start.
#pragma once

#include "base/clock.h"
#include "config/config.h"
#include "daemon/sources/runtime_container_names.h"
#include "daemon/state/taint_store.h"
#include "observe/node/filesystem_reader.h"
#include "report/dbus/dbus_thread.h"
#include "report/health_gate.h"
#include "report/http/server/http_server.h"
#include "report/metrics/admission_counts.h"
#include "report/metrics/metrics.h"
#include "report/view/cpus_view.h"
#include "report/view/node_status.h"

#include <headroom/result.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace headroom::daemon {

// The D-Bus requests that only the daemon can answer, as JSON. Called on the bus's thread.

// Whether each pod of a manifest would be admitted now: {"node", "allocatable", "pods":
// [{"admitted", "refusals", "resolved_by_preemption", "preemption_victims",
// "untolerated_preferred_taints"}]}. Errors: the node has not been read yet, or all errors of
// the manifest, one per line.
Result<std::string> admit_json(const report::NodeStatusRef& status, const std::string& manifest);

// The same for a caller that starts the pods which are admitted: what becomes of them is counted.
Result<std::string> admit_to_start_json(const report::NodeStatusRef& status,
                                        const std::string& manifest,
                                        report::AdmissionCounts& counts);

// Applies edits in the syntax of kubectl taint; returns the taints then in force. All errors at
// once, one per line.
Result<std::string> taint_json(TaintStore& store, const std::vector<std::string>& edits,
                               bool overwrite);

// Which container has which CPUs; only the machine's CPUs if CPU pinning is off.
Result<std::string> cpus_response_json(const report::PublishedCpusView& cpus_view);
// If memory is not pinned, only the machine's nodes.
Result<std::string> memory_response_json(const report::PublishedCpusView& cpus_view);

// NodeStatusWriter: writes the node's status to a file on a thread of its own, so that a disk that
// hangs does not delay the loop. Only the newest status is written, at a bounded rate.

class NodeStatusWriter {
 public:
  static constexpr std::chrono::milliseconds kMinPeriod{1000};

  explicit NodeStatusWriter(std::filesystem::path path,
                            std::chrono::milliseconds min_period = kMinPeriod);
  // Writes the pending status.
  ~NodeStatusWriter();
  NodeStatusWriter(const NodeStatusWriter&) = delete;
  NodeStatusWriter& operator=(const NodeStatusWriter&) = delete;

  // Replaces a pending status. Any thread; never waits for the disk.
  void submit(report::NodeStatusRef status);

  std::uint64_t written() const { return written_; }
  std::uint64_t failed() const { return failed_; }

 private:
  void run();
  void write(const report::NodeStatus& status);

  const std::filesystem::path path_;
  const std::chrono::milliseconds min_period_;
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> failed_{0};
  bool failure_logged_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  report::NodeStatusRef next_;
  bool stop_ = false;
  std::thread thread_;
};

// The router of the daemon's HTTP server, built from the configuration.

// To be called after every BPF program was loaded, since their cost is shown.
std::shared_ptr<report::Router> make_router(
    const config::Config& config, std::shared_ptr<report::PublishedViews> views,
    std::shared_ptr<report::PublishedCpusView> cpus,
    std::shared_ptr<const report::AdmissionCounts> admissions,
    std::shared_ptr<const KubeletContainerNames> kubelet_names,
    std::shared_ptr<const report::ReloadStatus> reload, const observe::Filesystems& filesystems,
    std::string cgroup_root = {});

class Servers {
 public:
  // Everything that the setup refers to must outlive this. Without `router` nothing is served by
  // HTTP.
  void start(const config::Config& config, report::DbusSetup bus,
             std::shared_ptr<report::Router> router);

  // These never block; servers that do not run are skipped.
  void submit_status(const report::NodeStatusRef& status) {
    if (node_status_writer_) node_status_writer_->submit(status);
  }
  void evicted(const report::Eviction& eviction) {
    if (bus_) bus_->evicted(eviction);
  }
  void properties_changed() {
    if (bus_) bus_->properties_changed();
  }
  std::uint64_t lost_signals() const { return bus_ ? bus_->lost() : 0; }
  // Updated by the loop, read by health checks.
  report::Heartbeat& heartbeat() { return *heartbeat_; }

 private:
  const std::shared_ptr<report::Heartbeat> heartbeat_ =
      std::make_shared<report::Heartbeat>(&observe::now);
  std::unique_ptr<NodeStatusWriter> node_status_writer_;
  std::unique_ptr<report::HttpServer> http_;
  std::unique_ptr<report::DbusThread> bus_;
};

}  // namespace headroom::daemon
