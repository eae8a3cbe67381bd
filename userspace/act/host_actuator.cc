// SPDX-License-Identifier: Apache-2.0
#include "act/host_actuator.h"

#include "act/processes.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace headroom::act {
namespace {

// Unknown counts as populated: a kill of an empty cgroup does no harm, a kill left out does.
bool populated(int events) {
  char text[128];
  const ssize_t n = ::pread(events, text, sizeof text, 0);
  if (n <= 0) return true;
  return std::string_view(text, static_cast<std::size_t>(n)).find("populated 0") ==
         std::string_view::npos;
}

}  // namespace

Outcome HostActuator::done(const Decision& decision, Outcome::Result result, int error) const {
  return Outcome{.decision = decision, .result = result, .error = error, .at = now_()};
}

Outcome HostActuator::act(const Decision& decision) {
  const Armed* armed = armory_.find(decision.cgroup);
  // Not armed: it vanished before its descriptors could be opened, or we ran out of descriptors.
  if (!armed) return done(decision, Outcome::Result::kFailed, ENOENT);
  if (!populated(armed->events.get())) return done(decision, Outcome::Result::kGone);
  switch (decision.act) {
    case Act::kKill:
      return kill(decision, *armed);
    case Act::kTerminate:
      return terminate(decision, *armed);
  }
  return done(decision, Outcome::Result::kFailed, EINVAL);
}

Outcome HostActuator::kill(const Decision& decision, const Armed& armed) const {
  if (::write(armed.kill.get(), "1", 1) == 1) return done(decision, Outcome::Result::kDone);
  // ENODEV: the cgroup was removed since it was armed.
  if (errno == ENODEV) return done(decision, Outcome::Result::kGone);
  return done(decision, Outcome::Result::kFailed, errno);
}

Outcome HostActuator::terminate(const Decision& decision, const Armed& armed) const {
  const auto sent = signal_processes(armed.directory.get(), SIGTERM);
  if (!sent && (sent.error().code == ENODEV || sent.error().code == ENOENT))
    return done(decision, Outcome::Result::kGone);
  if (!sent) return done(decision, Outcome::Result::kFailed, sent.error().code);
  return done(decision, *sent > 0 ? Outcome::Result::kDone : Outcome::Result::kGone);
}

}  // namespace headroom::act
