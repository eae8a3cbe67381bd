// SPDX-License-Identifier: Apache-2.0
#include "act/host_actuator.h"

#include "act/async_actions.h"
#include "act/exec/command_starter.h"
#include "act/exec/pre_stop.h"
#include "act/kill/kill_fds.h"
#include "base/process_stat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>

namespace headroom::act {
namespace {

// The cgroup that is killed or limited.
CgroupId cgroup_of(const Decision& decision) {
  return decision.part.unit == EvictionUnit::kContainer ? decision.part.cgroup : decision.cgroup;
}

bool has_exited(int pidfd) {
  pollfd ready{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&ready, 1, 0) > 0;
}

}  // namespace

Outcome HostActuator::done(const Decision& decision, Outcome::Result result, int error) const {
  return Outcome{.decision = decision, .result = result, .error = error, .at = now_()};
}

Outcome HostActuator::act(const Decision& decision) {
  if (decision.act == Act::kReclaim) return reclaim(decision);
  if (decision.act == Act::kRemove) return remove_volumes(decision);
  if (decision.act == Act::kRestoreMemoryHigh) return restore_memory_high(decision);
  if (decision.part.unit == EvictionUnit::kProcess) return signal_process(decision);
  const CgroupKillFds* kill_fds = kill_fds_.find(cgroup_of(decision));
  // No descriptors: the cgroup was removed before they could be opened, or no descriptor was free.
  if (!kill_fds) return done(decision, Outcome::Result::kFailed, ENOENT);
  if (!cgroup_populated(kill_fds->events.get())) return done(decision, Outcome::Result::kGone);
  switch (decision.act) {
    case Act::kKill:
      return kill(decision, *kill_fds);
    case Act::kTerminate:
      return terminate(decision, *kill_fds);
    case Act::kPreStop:
      return pre_stop(decision, *kill_fds);
    case Act::kReclaimCache:
    case Act::kLowerMemoryHigh:
    case Act::kRaiseMemoryHigh:
      return perform_ladder_step(decision, *kill_fds);
    case Act::kRestoreMemoryHigh:
    case Act::kRemove:
    case Act::kReclaim:
      break;  // handled above: none needs a running pod
  }
  return done(decision, Outcome::Result::kFailed, EINVAL);
}

Outcome HostActuator::kill(const Decision& decision, const CgroupKillFds& kill_fds) const {
  if (kill_fallback_->kill(kill_fds.directory.get(), kill_fds.kill.get()) == 1) {
    Outcome killed = done(decision, Outcome::Result::kDone);
    killed.at = kill_fallback_->sent_before_write().value_or(killed.at);
    reaper_->assist(kill_fds.directory.get());
    return killed;
  }
  // ENODEV: the cgroup was removed after its descriptors were opened.
  if (errno == ENODEV) return done(decision, Outcome::Result::kGone);
  return done(decision, Outcome::Result::kFailed, errno);
}

// The pidfd of the process: kept since its first signal, or opened before, or opened now (after a
// restart).
int HostActuator::process_for(const Decision& decision, Fd& opened) const {
  for (const SignalledProcess& each : signalled_processes_)
    if (each.decision.cgroup == decision.cgroup && each.decision.part.is(decision.part))
      return each.process.get();
  if (const auto* kill_fds = kill_fds_.find(decision.cgroup, decision.part.process))
    return kill_fds->process.get();
  opened.reset(open_process(decision.part.process));
  return opened.get();
}

Outcome HostActuator::signal_process(const Decision& decision) {
  Fd opened;
  const int process = process_for(decision, opened);
  if (process < 0) return done(decision, Outcome::Result::kGone);
  const int signal = decision.act == Act::kKill ? SIGKILL : SIGTERM;
  if (::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) != 0) {
    if (errno == ESRCH) return done(decision, Outcome::Result::kGone);
    return done(decision, Outcome::Result::kFailed, errno);
  }
  const Outcome signalled = done(decision, Outcome::Result::kDone);
  if (signal == SIGKILL) reaper_->assist_process(process);
  track_process(decision, process);
  return signalled;
}

// If the table is full, the exit is not reported, and the victim's deadline passes.
void HostActuator::track_process(const Decision& decision, int process) {
  for (SignalledProcess& each : signalled_processes_)
    if (each.process.get() == process) {
      each.decision = decision;
      return;
    }
  if (signalled_processes_.size() == kMaxSignalledProcesses) return;
  if (Fd copy(::fcntl(process, F_DUPFD_CLOEXEC, 0)); copy)
    signalled_processes_.push_back({.decision = decision, .process = std::move(copy)});
}

void HostActuator::collect(std::vector<Outcome>& ended) {
  async_actions_->collect(ended);
  std::erase_if(signalled_processes_, [&](const SignalledProcess& each) {
    if (!has_exited(each.process.get())) return false;
    ended.push_back(done(each.decision, Outcome::Result::kGone));
    return true;
  });
}

// Also of an empty cgroup, which may be started again, and of one that was removed.
Outcome HostActuator::restore_memory_high(const Decision& decision) {
  if (!memory_high_overrides_) return done(decision, Outcome::Result::kFailed, EOPNOTSUPP);
  return begin(decision, [overrides = memory_high_overrides_, limits = limits_,
                          cgroup = cgroup_of(decision)](const std::stop_token&) {
    // Otherwise the ladder would find memory.high "max", and its own value would be restored later.
    limits->restore(cgroup);
    return overrides->restore(cgroup);
  });
}

Outcome HostActuator::perform_ladder_step(const Decision& decision, const CgroupKillFds& kill_fds) {
  const int copy = ::fcntl(kill_fds.directory.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return done(decision, Outcome::Result::kFailed, errno);
  auto directory = std::make_shared<Fd>(copy);
  if (decision.act == Act::kReclaimCache)
    return begin(decision, [directory, bytes = *decision.bytes](const std::stop_token&) {
      return reclaim_page_cache(directory->get(), bytes);
    });
  if (!memory_high_overrides_) return done(decision, Outcome::Result::kFailed, EOPNOTSUPP);
  const CgroupId cgroup = cgroup_of(decision);
  return begin(decision, [overrides = memory_high_overrides_, directory, cgroup,
                          bytes = *decision.bytes](const std::stop_token&) {
    return overrides->override_high(cgroup, directory->get(), bytes);
  });
}

Outcome HostActuator::terminate(const Decision& decision, const CgroupKillFds& kill_fds) const {
  const auto sent = signal_processes(kill_fds.directory.get(), SIGTERM);
  if (!sent && (sent.error().code == ENODEV || sent.error().code == ENOENT))
    return done(decision, Outcome::Result::kGone);
  if (!sent) return done(decision, Outcome::Result::kFailed, sent.error().code);
  return done(decision, *sent > 0 ? Outcome::Result::kDone : Outcome::Result::kGone);
}

std::vector<FailsafeVictim> HostActuator::open_failsafe_list(
    std::span<const Decision> kills) const {
  const auto copy = [](const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); };
  std::vector<FailsafeVictim> victims;
  for (const Decision& decision : kills) {
    if (decision.part.unit == EvictionUnit::kProcess) {
      const auto* process = kill_fds_.find(decision.cgroup, decision.part.process);
      if (!process) continue;
      FailsafeVictim victim{decision, {}, {}, {}, copy(process->process)};
      if (victim.process) victims.push_back(std::move(victim));
      continue;
    }
    const CgroupKillFds* kill_fds = kill_fds_.find(cgroup_of(decision));
    if (!kill_fds) continue;
    FailsafeVictim victim{
        decision, copy(kill_fds->directory), copy(kill_fds->kill), copy(kill_fds->events), {}};
    if (victim.directory && victim.kill && victim.events) victims.push_back(std::move(victim));
  }
  return victims;
}

Outcome HostActuator::begin(const Decision& decision, AsyncActions::Work work) {
  if (async_actions_->start(decision, std::move(work)))
    return done(decision, Outcome::Result::kStarted);
  return done(decision, Outcome::Result::kFailed, EAGAIN);
}

// Containers before images: a dead container keeps its image in use.
Outcome HostActuator::reclaim(const Decision& decision) {
  std::vector<Command> commands;
  const auto add = [&](bool wanted, const std::vector<std::string>& argv) {
    if (wanted && !argv.empty())
      commands.push_back({.argv = argv,
                          .in_background = true,
                          .data_limit = options_.reclaim_memory,
                          .user = options_.reclaim_user});
  };
  add(decision.steps.containers, options_.reclaim_containers);
  add(decision.steps.images, options_.reclaim_images);
  return begin(decision, [commands, socket = options_.commands_socket, deadline = decision.deadline,
                          now = now_](const std::stop_token& stop) {
    int first_error = 0;
    for (const Command& command : commands) {
      auto running = start_command(command, socket, deadline - now());
      const int error = running ? running->wait(deadline, now, stop) : running.error().code;
      if (first_error == 0) first_error = error;
    }
    return first_error;
  });
}

Outcome HostActuator::remove_volumes(const Decision& decision) {
  std::vector<std::string> directories;
  for (const Volume& volume : decision.pod->volumes) {
    if (volume.kind != Volume::Kind::kEmptyDir || volume.in_memory) continue;
    if (std::string path = volume_path(options_.paths, *decision.pod, volume); !path.empty())
      directories.push_back(std::move(path));
  }
  return begin(decision, [directories](const std::stop_token& stop) {
    int first_error = 0;
    for (const std::string& directory : directories)
      if (const auto removed = remove_tree(directory, stop); !removed && first_error == 0)
        first_error = removed.error().code;
    return first_error;
  });
}

// The commands are stopped when the pod's grace is over.
Outcome HostActuator::pre_stop(const Decision& decision, const CgroupKillFds& kill_fds) {
  const int copy = ::fcntl(kill_fds.directory.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return done(decision, Outcome::Result::kFailed, errno);
  auto directory = std::make_shared<Fd>(copy);
  return begin(decision, [decision, directory, socket = options_.commands_socket,
                          now = now_](const std::stop_token& stop) {
    return run_pre_stop(decision, directory->get(), socket, now, stop);
  });
}

}  // namespace headroom::act
