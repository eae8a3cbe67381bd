// SPDX-License-Identifier: Apache-2.0
// OomScores: writes oom_score_adj of the processes of pods, and restores the original values.
//
// The original value is kept for each cgroup of a pod: a process inherits it from its parent. A
// process below zero is protected on purpose (the pod's sandbox by its runtime) and is left alone.
// So is one that has just started: systemd and the runtimes set its value after they have moved it
// to its cgroup, and what is there until then is not the original.
#pragma once

#include <headroom/result.h>
#include <headroom/units.h>

#include <atomic>
#include <chrono>
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
  std::uint64_t failed = 0;  // refused (EACCES, EPERM) or another error
};

// What is known of one pod.
struct OriginalOomScores {
  std::string path;                  // of the pod's cgroup, below the root: "/kubepods.slice/…"
  std::optional<int> applied{};      // what its processes have now; absent: nothing yet
  std::map<CgroupId, int> values{};  // original values, by the cgroup in or below the pod's
  // The value that headroomd wrote before `applied`, until every process has the new one: after a
  // crash some still have it.
  std::optional<int> applied_before{};
  friend bool operator==(const OriginalOomScores&, const OriginalOomScores&) = default;
};

class OomScores {
 public:
  // Called after each process; may sleep, to spread the work.
  using Pause = std::function<void()>;
  static constexpr Duration kSettled = std::chrono::seconds(1);

  // Processes younger than `settled` are neither read nor written, only restored.
  OomScores(std::filesystem::path cgroup_root, Pause pause, Duration settled = kSettled)
      : root_(std::move(cgroup_root)), pause_(std::move(pause)), settled_(settled) {}

  // Two steps, so that the original values can be saved between them; found() has them after the
  // first. Reads the values of the processes, and keeps `value` for write(). True: write() has
  // something to write. If the cgroup at `path` has another id, the pod's cgroup was removed and
  // nothing is done.
  bool prepare(CgroupId pod, const std::string& path, int value);
  // Whether the last prepare() left processes alone that had just started.
  bool left_young() const { return left_young_; }
  // Writes the prepared value to every process that has another one; processes in cgroups created
  // since are left for the next time.
  void write(CgroupId pod);
  // Restores the original values, and forgets the pod.
  void restore(CgroupId pod);
  void restore_all();

  // By pod: what the daemon needs after a restart to restore the values.
  const std::map<CgroupId, OriginalOomScores>& found() const { return found_; }
  void resume(std::map<CgroupId, OriginalOomScores> found) { found_ = std::move(found); }

  OomScoreCounts counters() const { return {written_, gone_, failed_}; }  // any thread

 private:
  using ScoreFor = std::function<int(CgroupId cgroup, int found)>;
  void write_cgroups(int directory, Duration settled, const ScoreFor& score_for);
  void write_processes(int directory, CgroupId cgroup, Duration settled, const ScoreFor& score_for);
  void write_score(int process, CgroupId cgroup, const ScoreFor& score_for);
  void failed(int error);

  const std::filesystem::path root_;
  const Pause pause_;
  const Duration settled_;
  bool left_young_ = false;
  std::map<CgroupId, OriginalOomScores> found_;
  std::atomic<std::uint64_t> written_{0}, gone_{0}, failed_{0};
};

}  // namespace headroom::act
