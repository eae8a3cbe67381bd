// SPDX-License-Identifier: Apache-2.0
// The fields of evictions and taints in the state files.
#pragma once

#include "base/state/saved_taints.h"
#include "recording/shapes.h"

#include <headroom/judge.h>

#include <string_view>
#include <tuple>

namespace headroom::state {

// The numbers are those of recordings: new enumerators go last.
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
                gone_at, held, due_before, due, memory_request, left, ran, part);

// Without labels, annotations, placement and ignored fields: no step of an eviction reads them, and
// they may be a megabyte, which the loop would write at each step.
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
