// SPDX-License-Identifier: Apache-2.0
// OomScoreWorker: keeps oom_score_adj of the pods' processes equal to the ranking, on a thread of
// its own: the loop submits a request and does not wait.
#pragma once

#include "act/kill/oom_scores.h"
#include "act/original_values.h"
#include "base/thread/latest_request.h"

#include <headroom/units.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace headroom::daemon {

struct OomScoreRequest {
  CgroupId pod;
  std::string path;  // of its cgroup, below the root
  int value = 0;
};

class OomScoreWorker {
 public:
  // Processes written without a pause: two thousand a second cost about a twentieth of a CPU.
  static constexpr int kBurst = 100;
  static constexpr std::chrono::milliseconds kPauseBetweenBursts{50};
  // The processes of a pod with an unchanged value are checked again at this period: a container
  // may have started since.
  static constexpr std::chrono::seconds kRewritePeriod{30};
  // A pod that is new, or has processes that have just started, is checked again sooner.
  static constexpr std::chrono::seconds kFirstRescan{3};

  OomScoreWorker(std::filesystem::path cgroup_root, const std::filesystem::path& state_dir,
                 Duration settled = act::OomScores::kSettled);
  // Restores the original values.
  ~OomScoreWorker();
  OomScoreWorker(const OomScoreWorker&) = delete;
  OomScoreWorker& operator=(const OomScoreWorker&) = delete;

  // Sets the requested scores; pods that are not listed get their original values back. Never
  // blocks. Any thread.
  void request(std::vector<OomScoreRequest> requests);

  act::OomScoreCounts counters() const { return scores_.counters(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct AppliedScore {
    int value = 0;
    Clock::time_point at;
  };

  void resume();
  void run(const std::stop_token& stop);
  void write_requested(const std::vector<OomScoreRequest>& requests, const std::stop_token& stop);
  void restore_unrequested(const std::vector<OomScoreRequest>& requests);
  bool save();
  void pause();

  act::OomScores scores_;
  const act::OomScoreFile file_;
  std::map<CgroupId, act::OriginalOomScores> saved_;
  std::unordered_map<CgroupId, AppliedScore> applied_;
  int since_pause_ = 0;
  bool failure_logged_ = false;
  LatestRequest<std::vector<OomScoreRequest>> next_;
  std::jthread thread_;  // destroyed first: it uses the members above
};

}  // namespace headroom::daemon
