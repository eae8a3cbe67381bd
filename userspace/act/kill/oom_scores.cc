// SPDX-License-Identifier: Apache-2.0
#include "act/kill/oom_scores.h"

#include "base/cgroup_directory.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

namespace headroom::act {
namespace {

// A directory of /proc refers to that process only: after its end, reads and writes in it fail.
Fd open_process(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid);
  return Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::optional<int> read_score(int score_file) {
  char text[16];
  const ssize_t n = ::pread(score_file, text, sizeof text, 0);
  int value = 0;
  if (n <= 0 || std::from_chars(text, text + n, value).ec != std::errc{}) return std::nullopt;
  return value;
}

// False also if it has ended.
bool is_older_than(Duration age, pid_t pid) {
  const auto stat = process_stat(pid);
  return stat && started_before(observe::now() - age, *stat);
}

}  // namespace

bool OomScores::prepare(CgroupId pod, const std::string& path, int value) {
  left_young_ = false;
  const Fd directory = open_cgroup(root_.native() + path, pod);
  if (!directory) {
    found_.erase(pod);
    return false;
  }
  OriginalOomScores& known = found_[pod];
  known.path = path;
  const std::optional<int> applied = known.applied, before = known.applied_before;
  bool differs = false;
  write_cgroups(directory.get(), settled_, [&](CgroupId cgroup, int found) {
    // A value that headroom did not write was set by another program, even if it came later.
    // Processes in a cgroup that the pod itself created inherit the value of their parents.
    const bool ours = (applied && found == *applied) || (before && found == *before);
    if (!ours || known.values.empty())
      known.values.insert_or_assign(cgroup, found);
    else
      known.values.try_emplace(cgroup, known.values.begin()->second);
    differs |= found != value;
    return found;  // not written yet
  });
  // Keeps the value that was written last: a prepared one may not have been written.
  if (differs && applied && *applied != value && !known.applied_before)
    known.applied_before = applied;
  known.applied = value;
  return differs;
}

void OomScores::write(CgroupId pod) {
  const auto entry = found_.find(pod);
  if (entry == found_.end() || !entry->second.applied) return;
  OriginalOomScores& known = entry->second;
  const Fd directory = open_cgroup(root_.native() + known.path, pod);
  if (!directory) return;
  write_cgroups(directory.get(), settled_, [&](CgroupId cgroup, int found) {
    return known.values.contains(cgroup) ? *known.applied : found;
  });
  known.applied_before.reset();
}

void OomScores::restore(CgroupId pod) {
  const auto entry = found_.find(pod);
  if (entry == found_.end()) return;
  const OriginalOomScores known = std::move(entry->second);
  found_.erase(entry);
  const Fd directory = open_cgroup(root_.native() + known.path, pod);
  if (!directory || known.values.empty()) return;
  write_cgroups(directory.get(), Duration{}, [&](CgroupId cgroup, int) {
    const auto own = known.values.find(cgroup);
    return (own == known.values.end() ? known.values.begin() : own)->second;
  });
}

void OomScores::restore_all() {
  while (!found_.empty())
    restore(found_.begin()->first);
}

void OomScores::write_cgroups(int directory, Duration settled, const ScoreFor& score_for) {
  for_each_descendant(directory, [&](int each) {
    write_processes(each, cgroup_id_of(each).value_or(CgroupId{}), settled, score_for);
  });
}

// Opened first, then the cgroup is read again: a pid that is still listed is the opened process.
void OomScores::write_processes(int directory, CgroupId cgroup, Duration settled,
                                const ScoreFor& score_for) {
  const auto listed = pids_of(directory);
  if (!listed) return;  // threaded or removed: its processes are listed elsewhere or have ended
  std::vector<std::pair<pid_t, Fd>> opened;
  for (const pid_t pid : *listed)
    if (Fd process = open_process(pid)) opened.emplace_back(pid, std::move(process));
  const auto still_members = pids_of(directory);
  if (!still_members) return;
  for (const auto& [pid, process] : opened) {
    if (std::find(still_members->begin(), still_members->end(), pid) == still_members->end())
      continue;
    if (settled > Duration{} && !is_older_than(settled, pid)) {
      left_young_ = true;
      continue;
    }
    write_score(process.get(), cgroup, score_for);
    pause_();
  }
}

void OomScores::write_score(int process, CgroupId cgroup, const ScoreFor& score_for) {
  const Fd score_file(::openat(process, "oom_score_adj", O_RDWR | O_CLOEXEC));
  if (!score_file) return failed(errno);
  const auto found = read_score(score_file.get());
  if (!found) return failed(ESRCH);
  if (*found < 0) return;
  const int value = score_for(cgroup, *found);
  if (value == *found) return;
  const std::string text = std::to_string(value);
  if (::pwrite(score_file.get(), text.data(), text.size(), 0) < 0) return failed(errno);
  ++written_;
}

void OomScores::failed(int error) {
  ++(error == ESRCH || error == ENOENT ? gone_ : failed_);
}

}  // namespace headroom::act
