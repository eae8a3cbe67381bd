// SPDX-License-Identifier: Apache-2.0
// EvictionSync: turns the audit log into requests to the API server, one after the other, on a
// thread of headroom-kube. Pending requests are kept in a file.
#pragma once

#include "config/config.h"
#include "kube/api/eviction_queue.h"
#include "kube/api/node_condition_sync.h"
#include "kube/api/pending_eviction.h"
#include "kube/health_file.h"
#include "kube/http_client.h"

#include <headroom/units.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::kube {

// SyncCounters: the results of reports to the API server since the start.

struct SyncCounters {
  std::uint64_t taken = 0;     // evictions found in the audit log
  std::uint64_t unread = 0;    // its lines that were not JSON, and logs that were gone too soon
  std::uint64_t finished = 0;  // pending evictions that were completed
  std::uint64_t gone = 0;      // pods that did not exist any more when they were reported
  std::array<std::uint64_t, kSteps> done{};  // by step
  std::array<std::uint64_t, kResponseClasses>
      response_class{};         // of all requests, by the class of the response
  std::uint64_t unwritten = 0;  // times the state could not be written
  // From the decision to evict until the API server had everything.
  double delay_sum = 0, delay_most = 0;  // seconds
};

inline nlohmann::ordered_json counters_json(const SyncCounters& counters) {
  nlohmann::ordered_json json{{"taken", counters.taken},
                              {"reported", counters.finished},
                              {"podGone", counters.gone},
                              {"auditLinesSkipped", counters.unread},
                              {"stateWriteFailures", counters.unwritten},
                              {"delaySumSeconds", counters.delay_sum},
                              {"delayMostSeconds", counters.delay_most}};
  for (const Step step : {Step::kStatus, Step::kAct, Step::kEvent})
    json["done"][std::string(name(step))] = counters.done[static_cast<std::size_t>(step)];
  for (std::size_t i = 0; i < kResponseClasses; ++i)
    json["requests"][std::string(name(static_cast<ResponseClass>(i)))] = counters.response_class[i];
  return json;
}

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
