// SPDX-License-Identifier: Apache-2.0
// PodMemoryWorker: watches cgroups of pods near their own memory.max on a thread of its own, in
// steps of a millisecond if need be, and carries out what plan_limit() and plan_cold() say. The
// loop submits a request at a sweep and does not wait.
#pragma once

#include "act/limits/memory_max_overrides.h"
#include "act/limits/reclaim_threads.h"
#include "act/original_values.h"
#include "base/file_io.h"
#include "base/thread/latest_request.h"
#include "base/thread/locked_value.h"
#include "daemon/limits/limit_plan_queue.h"
#include "daemon/limits/pod_memory_request.h"
#include "judge/limits/cold_memory.h"
#include "judge/limits/limit_plan.h"
#include "observe/node/node_source.h"
#include "report/view/node_view.h"

#include <headroom/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

namespace headroom::daemon {

class PodMemoryWorker {
 public:
  // What is planned near a limit is added to `plans`.
  PodMemoryWorker(std::filesystem::path cgroup_root, const std::filesystem::path& state_dir,
                  std::shared_ptr<LimitPlanQueue> plans = std::make_shared<LimitPlanQueue>());
  // Lowers what it raised, as far as that goes at once.
  ~PodMemoryWorker();
  PodMemoryWorker(const PodMemoryWorker&) = delete;
  PodMemoryWorker& operator=(const PodMemoryWorker&) = delete;

  // Any thread. With no policy in it, every limit is lowered again and nothing else is done.
  void request(PodMemoryRequest request);
  report::PodMemoryCounts counts() const;

 private:
  struct Watched {
    std::string path;
    std::shared_ptr<const Fd> directory;
    Fd current, stat;  // memory.current, memory.stat
    std::int64_t max = 0;
    judge_limits::LimitHistory history{};
    Instant due{};
    Instant reclaimed_at{};  // when reclaim was last requested
    bool near = false;       // of its limit
  };
  using WatchedCgroups = std::map<CgroupId, Watched>;

  void resume();
  void run(const std::stop_token& stop);
  void adopt(PodMemoryRequest request);
  std::optional<Watched> open_cgroup(CgroupId id, const std::string& path) const;
  // Returns when the next one is due.
  Instant check_due_limits();
  void check_limit(CgroupId id, Watched& watched, Instant at);
  judge_limits::LimitPlan make_plan(CgroupId id, Watched& watched,
                                    const judge_limits::LimitReading& reading);
  std::optional<std::int64_t> room(Instant at);
  std::int64_t granted() const;
  void raise(CgroupId id, Watched& watched, std::int64_t to);
  void lower(CgroupId id, Watched& watched, std::int64_t to);
  void brake(CgroupId id, const Watched& watched, judge_limits::Brake brake);
  void reclaim(CgroupId id, Watched& watched, std::int64_t bytes, Instant at);
  void push_cold_memory();
  void publish();

  const std::filesystem::path root_;
  const std::shared_ptr<LimitPlanQueue> plans_;
  const act::MemoryMaxFile file_;
  act::MemoryMaxOverrides overrides_;
  act::ReclaimThreads limit_reclaim_, cold_reclaim_;
  observe::NodeSource node_;
  PodMemoryRequest active_;
  WatchedCgroups watched_;
  std::size_t near_ = 0;  // of them, near their limits
  std::map<CgroupId, judge_limits::ColdHistory> cold_;
  std::uint64_t cold_cost_of_gone_ = 0;  // bytes, of pods that are gone
  std::optional<std::int64_t> room_;
  Instant room_read_at_{};
  report::PodMemoryCounts totals_;  // of the worker's thread
  LatestRequest<PodMemoryRequest> next_;
  LockedValue<report::PodMemoryCounts> published_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
