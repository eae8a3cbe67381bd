// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/top/top_view.h"

#include <headroom/result.h>

#include <poll.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace headroom::ctl {
namespace {

// Terminal: the tty while `headroomctl top` runs: alternate screen and unbuffered keys. The
// destructor restores it.

class Terminal {
 public:
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  // Shows a frame of lines.
  void show(const std::string& frame) const;

  enum class Event : std::uint8_t { kTimeout, kResized, kQuit };
  Event wait(std::chrono::milliseconds timeout) const;

 private:
  Terminal(Fd signals, termios before);
  Event on_key() const;
  Event on_signal() const;

  Fd signals_;
  termios before_;
  bool active_ = true;
};

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

struct TopOptions {
  bool once = false;  // one frame, on stdout
  bool json = false;  // the status document, one line each second
};

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
constexpr milliseconds kRefresh{1000};

Result<Status> fetch() {
  const auto document = fetch_status();
  if (!document) return tl::make_unexpected(document.error());
  return parse_status(*document);
}

// Takes two samples, because rates need two.
int once() {
  const auto before = fetch();
  if (!before) return print_error(before.error());
  std::this_thread::sleep_for(kRefresh);
  const auto now = fetch();
  if (!now) return print_error(now.error());
  std::fputs(render_top(&*before, *now, Screen{.colour = screen_of_stdout().colour}).c_str(),
             stdout);
  return 0;
}

int stream_json(bool one) {
  for (;;) {
    const auto document = fetch_status();
    if (!document) return print_error(document.error());
    if (std::puts(document->c_str()) < 0 || std::fflush(stdout) != 0) return kFailed;
    if (one) return 0;
    std::this_thread::sleep_for(kRefresh);
  }
}

// The two statuses from which a frame is drawn. The earlier one is kept until the daemon has read
// the pods again.
class Samples {
 public:
  // Returns the error, or "". After an error the last values stay.
  std::string refresh() {
    auto fetched = fetch();
    if (!fetched) return fetched.error().what;
    if (now_ && now_->pods_at_ns != fetched->pods_at_ns) before_ = std::move(now_);
    now_ = std::move(*fetched);
    return "";
  }
  std::string frame(const std::string& remark) const {
    return render_top(before_ ? &*before_ : nullptr, *now_, screen_of_stdout(), remark);
  }
  explicit Samples(Status first) : now_(std::move(first)) {}

 private:
  std::optional<Status> before_;
  std::optional<Status> now_;
};

void watch(const Terminal& terminal, Samples samples) {
  std::string remark;
  auto due = Clock::now() + kRefresh;
  for (;;) {
    terminal.show(samples.frame(remark));
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    switch (terminal.wait(std::max(left, milliseconds(0)))) {
      case Terminal::Event::kQuit:
        return;
      case Terminal::Event::kResized:
        continue;
      case Terminal::Event::kTimeout:
        remark = samples.refresh();
        due = Clock::now() + kRefresh;
    }
  }
}

// The terminal is set up after the first status arrived, so that an error stays readable.
int live() {
  auto first = fetch();
  if (!first) return print_error(first.error());
  const auto terminal = Terminal::open();
  if (!terminal) return print_error(terminal.error());
  watch(*terminal, Samples(std::move(*first)));
  return 0;
}

int run_top(const TopOptions& options) {
  if (options.json) return stream_json(options.once);
  if (options.once || !::isatty(STDOUT_FILENO) || !::isatty(STDIN_FILENO)) return once();
  return live();
}

}  // namespace

void add_top(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<TopOptions>();
  auto* top = app.add_subcommand("top", "A live view of the node and its pods");
  top->group(kInspectGroup);
  top->add_flag("--once", options->once, "Print one frame and exit (takes a second)");
  top->add_flag("--json", options->json, "The status document as JSON, a line each second");
  top->callback([&chosen, options] { chosen = [options] { return run_top(*options); }; });
}

}  // namespace headroom::ctl
