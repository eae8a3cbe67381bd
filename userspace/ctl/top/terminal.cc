// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/terminal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <utility>

namespace headroom::ctl {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l", kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H", kEndOfLine = "\x1b[K\r\n", kBelow = "\x1b[J";

// Write errors are ignored: a terminal that is gone ends the view in wait().
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

sigset_t handled_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH})
    ::sigaddset(&set, signal);
  return set;
}

termios unbuffered(termios mode) {
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  mode.c_cc[VMIN] = 0;
  mode.c_cc[VTIME] = 0;
  return mode;
}

// The frame at the top of the screen. The last line has no newline, because that would scroll.
std::string positioned(std::string_view frame) {
  std::string text(kHome);
  if (frame.ends_with('\n')) frame.remove_suffix(1);
  for (const char c : frame)
    if (c == '\n')
      text.append(kEndOfLine);
    else
      text.push_back(c);
  return text.append("\x1b[K").append(kBelow);
}

}  // namespace

Result<Terminal> Terminal::open() {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) return errno_failure("use the terminal", errno);
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals) return errno_failure("watch for signals", errno);
  const termios mode = unbuffered(before);
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &mode) != 0)
    return errno_failure("set up the terminal", errno);
  put(kEnter);
  return Terminal(std::move(signals), before);
}

Terminal::Terminal(Fd signals, termios before) : signals_(std::move(signals)), before_(before) {}

Terminal::Terminal(Terminal&& other) noexcept
    : signals_(std::move(other.signals_)),
      before_(other.before_),
      active_(std::exchange(other.active_, false)) {}

Terminal::~Terminal() {
  if (!active_) return;
  put(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Terminal::show(const std::string& frame) const {
  put(positioned(frame));
}

Terminal::Event Terminal::wait(std::chrono::milliseconds timeout) const {
  std::array<pollfd, 2> fds{pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                            pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0)
    return Event::kTimeout;
  if (fds[1].revents) return on_signal();
  return on_key();
}

Terminal::Event Terminal::on_key() const {
  char key = 0;
  const ssize_t length = ::read(STDIN_FILENO, &key, 1);
  if (length <= 0) return Event::kQuit;  // the terminal is gone
  return key == 'q' || key == 'Q' ? Event::kQuit : Event::kResized;
}

Terminal::Event Terminal::on_signal() const {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return Event::kQuit;
  return info.ssi_signo == SIGWINCH ? Event::kResized : Event::kQuit;
}

}  // namespace headroom::ctl
