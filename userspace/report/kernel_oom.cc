// SPDX-License-Identifier: Apache-2.0
#include "report/kernel_oom.h"

#include "base/log/journal.h"
#include "report/eviction/messages.h"

#include <spdlog/fmt/fmt.h>

namespace headroom::report {
namespace {

std::string cgroup_name(CgroupId id, const std::string& path) {
  return path.empty() ? fmt::format("cgroup {}", id.value) : path;
}

}  // namespace

std::string kernel_oom_line(const KernelOomKill& kill) {
  const std::string where = cgroup_name(kill.cgroup, kill.path);
  const std::string pod_text =
      kill.pod ? fmt::format("{} ({})", pod_name(*kill.pod), where) : where;
  const std::string why = kill.limit_of
                              ? fmt::format("memory.max of {} was hit",
                                            *kill.limit_of == kill.cgroup
                                                ? std::string("its cgroup")
                                                : cgroup_name(*kill.limit_of, kill.limit_path))
                              : std::string("the node ran out of memory");
  const std::string other_choice_text =
      kill.had_all_pods() && kill.would_evict && !kill.same_choice()
          ? fmt::format("; headroom would have evicted {}", pod_name(*kill.would_evict))
          : "";
  return fmt::format("the kernel killed process {} ({}) of {}: {}{}", kill.pid, kill.comm, pod_text,
                     why, other_choice_text);
}

void log_kernel_oom(const KernelOomKill& kill) {
  log::write(log::Level::warn, kernel_oom_line(kill),
             {{"MESSAGE_ID", log::kKernelOomMessageId},
              {"HEADROOM_POD", kill.pod ? pod_name(*kill.pod) : ""},
              {"HEADROOM_POD_UID", kill.pod ? std::string_view(kill.pod->uid) : ""},
              {"HEADROOM_CGROUP", std::to_string(kill.cgroup.value)},
              {"HEADROOM_CGROUP_PATH", kill.path},
              {"HEADROOM_PID", std::to_string(kill.pid)},
              {"HEADROOM_COMM", kill.comm},
              {"HEADROOM_OOM_SCOPE", !kill.limit_of       ? "node"
                                     : kill.limit_of_pods ? "pods"
                                                          : "limit"}});
}

}  // namespace headroom::report
