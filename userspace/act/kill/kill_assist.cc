// SPDX-License-Identifier: Apache-2.0
#include "act/kill/kill_assist.h"

#include <sched.h>
#include <sys/types.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace headroom::act {
namespace {

namespace fs = std::filesystem;

bool set_round_robin(pid_t thread, int flags) {
  const sched_param lowest{.sched_priority = ::sched_get_priority_min(SCHED_RR)};
  return ::sched_setscheduler(thread, SCHED_RR | flags, &lowest) == 0;
}

}  // namespace

pid_t pid_of(int pidfd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pidfd));
  for (std::string word; info >> word;)
    if (pid_t pid = 0; word == "Pid:" && info >> pid) return pid;
  return 0;
}

bool raise_to_realtime(int pidfd) {
  const pid_t pid = pid_of(pidfd);
  if (pid < 1) return false;
  bool any = false;
  std::error_code gone;
  for (fs::directory_iterator task("/proc/" + std::to_string(pid) + "/task", gone), end;
       !gone && task != end; task.increment(gone)) {
    const std::string name = task->path().filename();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread > 0 && set_round_robin(thread, 0)) any = true;
  }
  return any;
}

bool raise_this_thread_to_realtime() {
  return set_round_robin(0, SCHED_RESET_ON_FORK);
}

}  // namespace headroom::act
