// SPDX-License-Identifier: Apache-2.0
// EvictionSync: turns the audit log into requests to the API server, one after the other, on a
// thread of headroom-kube. What was not sent yet is kept in a file.
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

// Clocks and chance, for tests to stand in.
struct EvictionSyncPorts {
  std::function<Instant()> now;              // CLOCK_BOOTTIME
  std::function<std::int64_t()> unix_time;   // microseconds
  std::function<double()> chance;            // from [0, 1)
  Exchange exchange;                         // with the API server
  std::function<bool()> is_headroomd_alive;  // as far as is known
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
  EvictionSync(EvictionSyncOptions options, EvictionSyncPorts world);

  // Reads what is new and sends what is due. Returns how long nothing will be due if nothing
  // happens.
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
  Duration idle() const;

  const EvictionSyncOptions options_;
  const EvictionSyncPorts ports_;
  EvictionQueue queue_;
  std::string saved_;
  SyncCounters counters_;
  NodeConditionSync node_;
  std::string node_text_;         // of the node's status file, as last read
  unsigned missed_checks_ = 0;    // looks in a row at which headroomd did not seem alive
  Instant next_daemon_check_{};   // whether it lives
  unsigned server_failures_ = 0;  // with the server as a whole, in a row
  Instant paused_until_{};        // it is left alone
  std::string server_error_;      // what it was; "" when the last answer was one
  std::string audit_log_error_;   // with the audit log
};

}  // namespace headroom::kube
