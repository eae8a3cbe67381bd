// SPDX-License-Identifier: Apache-2.0
// KernelOomKill: a kill by the kernel's OOM killer: the node ran out of memory before headroomd
// acted, or a cgroup reached its own limit.
#pragma once

#include <headroom/pod.h>
#include <headroom/units.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {

struct KernelOomKill {
  CgroupId cgroup;                 // the victim's
  std::string path;                // "" if unknown
  std::shared_ptr<const Pod> pod;  // null: the victim is in no pod
  std::uint32_t pid = 0;
  std::string comm;
  std::optional<CgroupId> limit_of;  // the cgroup whose limit was hit; absent: the node ran out
  std::string limit_path;
  bool limit_of_pods = false;  // the limit is of all pods together
  std::shared_ptr<const Pod>
      would_evict{};  // the pod that headroom would have evicted; null: unknown

  // Whether the kernel chose among all pods.
  bool had_all_pods() const { return !limit_of || limit_of_pods; }
  bool same_choice() const { return pod && would_evict && pod->uid == would_evict->uid; }
};

// "the kernel killed process 4242 (workload) of default/hog (/kubepods.slice/…): memory.max of …
// was hit"
std::string kernel_oom_line(const KernelOomKill& kill);
// Writes the line to the log, with journal fields.
void log_kernel_oom(const KernelOomKill& kill);

}  // namespace headroom::report
