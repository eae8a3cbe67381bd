// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/top_command.h"

#include "ctl/common/argument_parser.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/top/terminal.h"
#include "ctl/top/top_view.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace headroom::ctl {
namespace {

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
