// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/pressure_watch.h"

#include "base/log/journal.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace headroom::observe {

Result<Fd> watch_pressure(const std::filesystem::path& file, PsiTrigger trigger) {
  Fd fd(::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return errno_failure("open " + file.native(), errno);
  const std::string asked = "some " + std::to_string(trigger.stall.count()) + " " +
                            std::to_string(trigger.window.count());
  // The kernel expects the terminating zero byte as well.
  if (::write(fd.get(), asked.c_str(), asked.size() + 1) < 0)
    return errno_failure("set a trigger on " + file.native(), errno);
  return fd;
}

}  // namespace headroom::observe

namespace headroom::daemon {

PressureWatch::PressureWatch(sd_event* event, std::filesystem::path file,
                             std::function<void()> on_pressure)
    : event_(event), file_(std::move(file)), on_pressure_(std::move(on_pressure)) {}

Result<> PressureWatch::start() {
  if (source_) return {};
  auto trigger = observe::watch_pressure(file_);
  if (!trigger) return tl::make_unexpected(trigger.error());
  sd_event_source* source = nullptr;
  const int result = sd_event_add_io(event_, &source, trigger->get(), EPOLLPRI, &on_ready, this);
  if (result < 0) return errno_failure("watch " + file_.native(), -result);
  source_.reset(source);
  trigger_ = std::move(*trigger);
  return {};
}

int PressureWatch::on_ready(sd_event_source*, int, uint32_t ready, void* data) {
  auto* watch = static_cast<PressureWatch*>(data);
  if (ready & (EPOLLERR | EPOLLHUP)) {  // its cgroup was removed
    watch->source_.reset();
    watch->trigger_ = {};
    return 0;
  }
  log::log_exceptions("react to pressure", [watch] { watch->on_pressure_(); });
  return 0;
}

}  // namespace headroom::daemon
