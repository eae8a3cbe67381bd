// SPDX-License-Identifier: Apache-2.0
// EvictionState: the victims and taint timers in progress, kept on disk for the next start of the
// daemon.
#pragma once

#include "base/state/saved_taints.h"
#include "base/state/state_file.h"
#include "recording/shapes.h"
#include "report/eviction/audit_log.h"

#include <headroom/judge.h>
#include <headroom/result.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

namespace headroom::state {

// The fields of evictions and taints in the state files.

// Enumerators have the same numbers as in recordings, so new ones are added at the end.
template <class T>
requires(recording::kEnumerators<T> >
         0) inline constexpr unsigned kEnumerators<T> = recording::kEnumerators<T>;

HEADROOM_FIELDS(TaintTimer, cgroup, started, length);

HEADROOM_FIELDS(Container, name, requests, limits, sidecar, pre_stop);
HEADROOM_FIELDS(Volume, name, kind, in_memory, size_limit, host_path);
HEADROOM_FIELDS(ProcessIdentity, pid, started);
HEADROOM_FIELDS(Part, unit, cgroup, process, comm, group);
HEADROOM_FIELDS(Reason, cause, signal, hard, threshold, available, capacity, sampled_at,
                first_crossed, last_clear, taint, limit, subject, used);
HEADROOM_FIELDS(Victim, pod, cgroup, reason, phase, terminated_at, killed_at, deadline, sigterm_due,
                gone_at, held, due_before, due, memory_request, left, ran, part, page_tables);

// Without labels, annotations, placement and ignored fields: no step of an eviction reads them, and
// they may be a megabyte that the loop would write at each step.
template <>
struct Fields<Pod> {
  static constexpr std::string_view kNames =
      "uid, name, pod_namespace, source, priority, priority_class, is_static, declared_qos, "
      "termination_grace, init_containers, containers, overhead, pod_level, volumes, rootfs_path, "
      "logs_path";
  template <class T>
  static auto tie(T& value) {
    auto& [uid, name, pod_namespace, source, priority, priority_class, is_static, declared_qos,
           termination_grace, init_containers, containers, overhead, pod_level, labels, annotations,
           placement, volumes, rootfs_path, logs_path, ignored_fields] = value;
    return std::tie(uid, name, pod_namespace, source, priority, priority_class, is_static,
                    declared_qos, termination_grace, init_containers, containers, overhead,
                    pod_level, volumes, rootfs_path, logs_path);
  }
};

}  // namespace headroom::state

namespace headroom::daemon {

// TaintTimersFile: how long each pod still tolerates the node's taints, on disk, so that the timers
// continue after a restart of the daemon.

class TaintTimersFile {
 public:
  explicit TaintTimersFile(const std::filesystem::path& state_dir);

  // Writes if the timers differ from what was last saved; cheap otherwise.
  Result<> save(const std::vector<TaintTimer>& timers);
  // The timers of this boot; a file of an earlier boot counts as empty, as does a missing one. A
  // damaged file is renamed, and an error is returned.
  Result<std::vector<TaintTimer>> load();

 private:
  const state::StateFile<std::vector<TaintTimer>> file_;
  std::vector<TaintTimer> saved_;
};

// VictimsFile: the evictions in progress, on disk, so that a restarted daemon resumes them.

class VictimsFile {
 public:
  explicit VictimsFile(const std::filesystem::path& state_dir);

  // Writes (new file, rename) if the victims differ from what was last saved; cheap otherwise.
  // `recorded`: the audit log has the ends of all that are missing now. Until then they are saved
  // with the others, so that the next daemon records them.
  Result<> save(const std::vector<Victim>& victims, bool recorded = true);
  // The victims of this boot; a file of an earlier boot counts as empty (its cgroup ids and times
  // are not valid), as does a missing one. A damaged file is renamed, and an error is returned.
  Result<std::vector<Victim>> load();

 private:
  bool unchanged(const std::vector<Victim>& victims) const;
  std::vector<Victim> ended(const std::vector<Victim>& victims) const;

  static constexpr std::ptrdiff_t kMaxEnded = 64;  // of those that ended, the last

  const state::StateFile<std::vector<Victim>> file_;
  std::vector<Victim> saved_;  // in progress
  std::vector<Victim> ended_;  // saved as well, until they are recorded
};

class EvictionState {
 public:
  // Reads the evictions that are in the audit log; called only if there are victims.
  using RecordedEvictions = std::function<std::vector<report::RecordedEviction>()>;

  explicit EvictionState(const std::filesystem::path& state_dir)
      : victims_file_(state_dir), taint_timers_file_(state_dir) {}

  // Writes the values that changed since the last call. Of consecutive failures the first is
  // logged. `recorded`: the audit log has every eviction that ended.
  void save(const History& history, bool recorded);
  // The victims of an earlier daemon of this boot, without those whose end is recorded. An
  // unreadable file is logged and counts as empty.
  std::vector<Victim> load_victims(const RecordedEvictions& recorded);
  std::vector<TaintTimer> load_taint_timers();

 private:
  VictimsFile victims_file_;
  TaintTimersFile taint_timers_file_;
  bool failure_logged_ = false;
};

}  // namespace headroom::daemon
