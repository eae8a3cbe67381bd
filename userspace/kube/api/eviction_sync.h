// SPDX-License-Identifier: Apache-2.0
// EvictionSync: turns the audit log into requests to the API server, one after the other, on a
// thread of headroom-kube. Pending requests are kept in a file.
#pragma once

#include "config/config.h"
#include "kube/api/eviction_queue.h"
#include "kube/api/node_condition_sync.h"
#include "kube/api/sync_counters.h"
#include "kube/health_file.h"
#include "kube/http_client.h"

#include <headroom/units.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace headroom::kube {

// Clocks, random numbers and the connection. Tests replace them.
struct EvictionSyncPorts {
  std::function<Instant()> now;              // CLOCK_BOOTTIME
  std::function<std::int64_t()> unix_time;   // microseconds
  std::function<double()> chance;            // random, in [0, 1)
  Exchange exchange;                         // with the API server
  std::function<bool()> is_headroomd_alive;  // true if that cannot be checked
  std::function<bool()> stopping;
};

struct EvictionSyncOptions {
  PendingEvictionOptions pending;
  NodeConditionSync::Options node;
  std::filesystem::path audit_log;
  std::filesystem::path node_status;
  std::filesystem::path state_file;
};

class EvictionSync {
 public:
  EvictionSync(EvictionSyncOptions options, EvictionSyncPorts ports);

  // Reads new lines and sends what is due. Returns the time until something is due again, if no
  // file changes.
  Duration run_once();

  nlohmann::ordered_json state() const;
  const SyncCounters& counters() const { return counters_; }
  const EvictionQueue& queue() const { return queue_; }

 private:
  void load();
  void save();
  void read_log();
  bool read_more();
  void read_node();
  void send_pending();
  bool send_step(PendingEviction& pending, Step step);
  void sync_node();
  void note(const PendingEviction& pending, Step step, const StepResult& result);
  void finish(const PendingEviction& pending);
  void note_response_class(ResponseClass response_class, std::optional<Duration> retry_after,
                           const std::string& why);
  Duration time_until_next_run() const;

  const EvictionSyncOptions options_;
  const EvictionSyncPorts ports_;
  EvictionQueue queue_;
  std::string saved_;
  SyncCounters counters_;
  NodeConditionSync node_;
  std::string node_text_;         // the node's status file, as last read
  unsigned missed_checks_ = 0;    // checks in a row in which headroomd did not answer
  Instant next_daemon_check_{};   // when headroomd is checked next
  unsigned server_failures_ = 0;  // failures of the server as a whole, in a row
  Instant paused_until_{};        // nothing is sent before this time while the server fails
  std::string server_error_;      // the last failure; "" after a response
  std::string audit_log_error_;   // the last error of the audit log; "" after a good read
};

}  // namespace headroom::kube
