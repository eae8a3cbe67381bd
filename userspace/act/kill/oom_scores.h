// SPDX-License-Identifier: Apache-2.0
// OomScores: writes oom_score_adj of the processes of pods, and restores the original values.
//
// The original value is kept for each cgroup of a pod: a process inherits it from its parent. A
// process below zero is protected on purpose (the pod's sandbox by its runtime) and is left alone.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace headroom::act {

struct OomScoreCounts {
  std::uint64_t written = 0;
  std::uint64_t gone = 0;    // ended before they could be written (ESRCH)
  std::uint64_t failed = 0;  // refused (EACCES, EPERM) or not to be reached
};

// What is known of one pod.
struct OriginalOomScores {
  std::string path;                  // of the pod's cgroup, below the root: "/kubepods.slice/…"
  std::optional<int> applied{};      // what its processes have now; absent: nothing yet
  std::map<CgroupId, int> values{};  // what was found, by the cgroup in or below the pod's
  // What they had before `given` from us, until each has been written: after a crash some still do.
  std::optional<int> applied_before{};
  friend bool operator==(const OriginalOomScores&, const OriginalOomScores&) = default;
};

class OomScores {
 public:
  // Called after each process; may sleep, so that many cost little at a time.
  using Pause = std::function<void()>;

  OomScores(std::filesystem::path cgroup_root, Pause pause)
      : root_(std::move(cgroup_root)), pause_(std::move(pause)) {}

  // Two steps, so that what was found can be saved between them; found() has it after the first.
  // Reads what the processes have, and remembers this value for them. True: write() has something
  // to write. The cgroup at `path` must have this id: one that has not is gone, and nothing is
  // done.
  bool prepare(CgroupId pod, const std::string& path, int value);
  // Every process that has another value than the prepared one gets it; one in a cgroup that was
  // made since is left for the next time.
  void write(CgroupId pod);
  // As they were found, and forgotten.
  void restore(CgroupId pod);
  void restore_all();

  // By pod: what a later life of the daemon needs to restore.
  const std::map<CgroupId, OriginalOomScores>& found() const { return found_; }
  void resume(std::map<CgroupId, OriginalOomScores> found) { found_ = std::move(found); }

  OomScoreCounts counters() const { return {written_, gone_, failed_}; }  // any thread

 private:
  using ScoreFor = std::function<int(CgroupId cgroup, int found)>;
  void write_cgroups(int directory, const ScoreFor& score_for);
  void write_processes(int directory, CgroupId cgroup, const ScoreFor& score_for);
  void write_score(int process, CgroupId cgroup, const ScoreFor& score_for);
  void failed(int error);

  const std::filesystem::path root_;
  const Pause pause_;
  std::map<CgroupId, OriginalOomScores> found_;
  std::atomic<std::uint64_t> written_{0}, gone_{0}, failed_{0};
};

}  // namespace headroom::act
