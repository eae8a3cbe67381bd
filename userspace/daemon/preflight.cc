// SPDX-License-Identifier: Apache-2.0
#include "daemon/preflight.h"

#include "base/fd.h"
#include "base/log/journal.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headroom::daemon {
namespace {

// Every armed pod holds four descriptors, every known cgroup one.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log::warning("raise the descriptor limit: {}", std::strerror(errno));
}

// Paging our own code in under memory pressure is how guardians come too late. ONFAULT: what was
// never touched (thread stacks) needs no page.
void lock_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    log::warning("memory is not locked ({}): under pressure this daemon may be paged out",
                 std::strerror(errno));
}

// The unit sets it too; this is for a daemon started by hand.
void lower_oom_score() {
  const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score && ::write(score.get(), "-999", 4) == 4) return;
  log::info("oom_score_adj stays as it was ({}): the kernel's OOM killer may choose this daemon",
            std::strerror(errno));
}

}  // namespace

Result<observe::CgroupRoot> preflight(Mode mode) {
  observe::CgroupRoot root = observe::find_cgroup_root();
  if (!root.unsupported_reason.empty()) return failure(root.unsupported_reason);
  if (::geteuid() == 0) return root;
  if (mode == Mode::kEnforce)
    return failure("mode enforce needs root: only it may kill another user's pod");
  log::warning("not root: no BPF and no armed kills; cgroups are read from files, observing only");
  return root;
}

bool request_realtime_scheduling() {
  const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_FIFO || policy == SCHED_RR) return true;
  const sched_param lowest_but_one{.sched_priority = ::sched_get_priority_min(SCHED_FIFO) + 1};
  return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest_but_one) == 0;
}

void lock_memory_and_limits() {
  raise_descriptor_limit();
  if (::geteuid() != 0) return;
  lock_memory();
  lower_oom_score();
  if (!request_realtime_scheduling())
    log::warning("no real-time scheduling ({}): on busy CPUs this daemon may look too late",
                 std::strerror(errno));
}

}  // namespace headroom::daemon
