// SPDX-License-Identifier: Apache-2.0
#include "daemon/startup.h"

#include "base/file_io.h"
#include "base/log/journal.h"
#include "base/operating_system.h"
#include "config/load/effective_settings.h"
#include "daemon/cpus/cpu_worker.h"
#include "daemon/program_memory.h"
#include "daemon/slices/slice_reconciler.h"
#include "observe/node/systemd_units.h"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headroom::daemon {
namespace {

// Each pod needs four descriptors for a kill, each known cgroup one.
void raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log::warning("raise the descriptor limit: {}", std::strerror(errno));
}

// Without locked memory, headroomd's own code would have to be read from disk under memory
// pressure. ONFAULT: pages that were never touched (thread stacks, libraries that the loop does not
// use) are not allocated.
void lock_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0)
    log::warning("memory is not locked ({}): under pressure this daemon may be paged out",
                 std::strerror(errno));
  if (const auto read = read_program_into_memory(kLoopLibraries); !read)
    log::warning("{}: the first eviction may wait for a disk", read.error().what);
}

// khugepaged, which has the lowest priority, makes huge pages of a process's memory and holds the
// lock of its address space meanwhile. Where every CPU is busy it is not run for seconds, and each
// thread that takes a page fault waits for it, also one of real-time priority.
void refuse_huge_pages() {
  if (::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
    log::warning("khugepaged is not kept away ({}): on busy CPUs this daemon may look too late",
                 std::strerror(errno));
}

// Large blocks are returned as soon as they are freed. By itself glibc would keep as much as the
// largest of them had, and the start reads the kernel's types, megabytes for each BPF object.
void return_large_blocks() {
  constexpr int kKibibyte = 1024;
  ::mallopt(M_MMAP_THRESHOLD, 256 * kKibibyte);
  ::mallopt(M_TRIM_THRESHOLD, 512 * kKibibyte);
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
  if (!root.unsupported_reason.empty())
    return failure(root.unsupported_reason + "; " +
                   OperatingSystem::of_host().use_cgroup_v2(root.unified));
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
  return_large_blocks();
  if (::geteuid() != 0) return;
  refuse_huge_pages();
  lock_memory();
  lower_oom_score();
  if (!request_realtime_scheduling())
    log::warning("no real-time scheduling ({}): on busy CPUs this daemon may look too late",
                 std::strerror(errno));
}

namespace {

using Capacity = std::function<Amounts(const config::Config&)>;

config::LoadResult load_and_check(const config::CommandLine& line,
                                  const config::LoadContext& context, const Capacity& capacity) {
  config::LoadResult loaded = config::read(line, context);
  if (loaded.diagnostics.empty() && loaded.config.slices.mode != SlicesMode::kOff)
    loaded.diagnostics = reservation_errors(loaded.config, capacity(loaded.config));
  if (!loaded.diagnostics.empty()) return loaded;
  loaded.diagnostics = cpu_config_errors(loaded.config);
  if (loaded.config.cpus.memory_policy == config::CpusConfig::MemoryManagerPolicy::kStatic)
    for (config::Diagnostic& one : memory_config_errors(loaded.config, capacity(loaded.config)))
      loaded.diagnostics.push_back(std::move(one));
  return loaded;
}

void warn(const config::Diagnostics& diagnostics, const char* consequence) {
  for (const config::Diagnostic& diagnostic : diagnostics)
    log::warning("{}", to_string(diagnostic));
  log::warning("{}", consequence);
}

}  // namespace

config::LoadResult load_config(const config::CommandLine& line, LoadReason occasion,
                               const Capacity& capacity, const std::filesystem::path& run_dir) {
  config::LoadContext context{.kubelet_runs = observe::kubelet_runs(), .run_dir = run_dir};
  config::LoadResult loaded = load_and_check(line, context, capacity);
  if (loaded.diagnostics.empty()) return loaded;
  if (context.kubelet_runs) {
    context.kubelet_runs = false;
    config::LoadResult without_kubelet = load_and_check(line, context, capacity);
    if (without_kubelet.diagnostics.empty()) {
      warn(loaded.diagnostics,
           "slices and CPUs are not observed beside the kubelet that runs here");
      return without_kubelet;
    }
  }
  if (!loaded.configz.empty() && occasion == LoadReason::kStart) {
    context.use_configz = false;
    config::LoadResult without_configz = load_and_check(line, context, capacity);
    if (without_configz.diagnostics.empty()) {
      warn(loaded.diagnostics, "what the kubelet says of itself does not count");
      return without_configz;
    }
  }
  return loaded;
}

}  // namespace headroom::daemon
