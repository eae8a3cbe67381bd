// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/top/curses_terminal.h"
#include "ctl/top/top_model.h"
#include "ctl/top/top_settings.h"
#include "ctl/top/top_text.h"

#include <headroom/result.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace headroom::ctl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct TopOptions {
  bool once = false;   // one frame, on stdout
  bool json = false;   // the status document, one line for each
  bool plain = false;  // lines for a screen reader
  bool mouse = false;
  std::optional<std::int64_t> delay{};  // seconds
  std::string sort;
  std::string columns;
  std::string filter;
  std::string pod;

  milliseconds period() const { return std::chrono::seconds(delay.value_or(plain ? 5 : 1)); }
};

Result<Status> fetch() {
  const auto document = fetch_status();
  if (!document) return tl::make_unexpected(document.error());
  return parse_status(*document);
}

// Takes two samples, because rates need two.
int once(const TopOptions& options, const TopRequest& request) {
  constexpr milliseconds kBetween{1000};
  const auto before = fetch();
  if (!before) return print_error(before.error());
  std::this_thread::sleep_for(kBetween);
  const auto now = fetch();
  if (!now) return print_error(now.error());
  const Screen screen{.colour = screen_of_stdout().colour};
  const std::string text = options.plain ? render_plain(&*before, *now, request)
                                         : render_top(&*before, *now, screen, request);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int stream_json(const TopOptions& options) {
  for (;;) {
    const auto document = fetch_status();
    if (!document) return print_error(document.error());
    if (std::puts(document->c_str()) < 0 || std::fflush(stdout) != 0) return kFailed;
    if (options.once) return 0;
    std::this_thread::sleep_for(options.period());
  }
}

// One frame below the other: nothing moves the cursor, nothing is drawn over.
int stream_plain(const TopOptions& options, const TopRequest& request) {
  std::optional<Status> before;
  for (;;) {
    auto now = fetch();
    if (!now) return print_error(now.error());
    const std::string text = render_plain(before ? &*before : nullptr, *now, request) + '\n';
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) return kFailed;
    before = std::move(*now);
    std::this_thread::sleep_for(options.period());
  }
}

// Fetches on another thread: a daemon that does not answer must not delay a key.
class StatusFetcher {
 public:
  explicit StatusFetcher(milliseconds period) : period_(period), due_(Clock::now() + period) {}

  // A new status or an error; absent: none has arrived since the last call.
  std::optional<Result<Status>> take() {
    if (!pending_.valid() && Clock::now() >= due_) {
      due_ = Clock::now() + period_;
      pending_ = std::async(std::launch::async, fetch);
    }
    if (!pending_.valid() ||
        pending_.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return std::nullopt;
    return pending_.get();
  }
  bool pending() const { return pending_.valid(); }

 private:
  milliseconds period_;
  Clock::time_point due_;
  std::future<Result<Status>> pending_;
};

void show_until_quit(CursesTerminal& terminal, TopModel& model, StatusFetcher& fetcher) {
  constexpr milliseconds kPoll{100};  // for the next status
  while (!terminal.ended()) {
    if (auto fetched = fetcher.take()) {
      model.set_remark(*fetched ? "" : fetched->error().what);
      if (*fetched) model.update(std::move(**fetched));
    }
    terminal.show(model.render(terminal.screen()));
    if (const auto input = terminal.wait(kPoll); input && !model.handle(*input)) return;
  }
}

// The terminal is set up after the first status arrived, so that an error stays readable.
int live(const TopOptions& options, const TopRequest& request) {
  auto first = fetch();
  if (!first) return print_error(first.error());
  const std::string before = top_settings_text(request.settings);
  TopModel model(std::move(*first), request);
  if (!options.pod.empty() && !model.open_pod(options.pod))
    return print_error(Error{"there is no pod " + printable(options.pod)});
  StatusFetcher fetcher(options.period());
  {
    auto terminal =
        CursesTerminal::open({.colour = screen_of_stdout().colour, .mouse = options.mouse});
    if (!terminal) {
      std::fprintf(stderr, "headroomctl: %s; --plain is used\n", terminal.error().what.c_str());
      return stream_plain(options, request);
    }
    show_until_quit(*terminal, model, fetcher);
  }
  if (top_settings_text(model.settings()) != before)
    if (const auto saved = save_top_settings(top_settings_file(), model.settings()); !saved)
      std::fprintf(stderr, "headroomctl: %s; the columns are not kept\n",
                   saved.error().what.c_str());
  // An unfinished request would delay the end by its timeout.
  if (fetcher.pending()) std::_Exit(0);
  return 0;
}

// The settings that were kept, and those of the command line over them.
Result<TopRequest> request_of(const TopOptions& options) {
  TopRequest request{.filter = options.filter, .pod = options.pod};
  if (auto settings = load_top_settings(top_settings_file()))
    request.settings = std::move(*settings);
  else
    std::fprintf(stderr, "headroomctl: %s; the defaults are used\n", settings.error().what.c_str());
  if (!options.columns.empty()) {
    auto columns = parse_columns(options.columns);
    if (!columns) return tl::make_unexpected(columns.error());
    request.settings.columns = std::move(*columns);
  }
  if (!options.sort.empty()) {
    request.settings.sort = options.sort;
    request.settings.reversed = false;
  }
  return request;
}

int run_top(const TopOptions& options) {
  if (options.json) return stream_json(options);
  const auto request = request_of(options);
  if (!request) return print_usage_error(request.error());
  const bool interactive = ::isatty(STDOUT_FILENO) && ::isatty(STDIN_FILENO);
  if (options.once) return once(options, *request);
  if (options.plain) return stream_plain(options, *request);
  return interactive ? live(options, *request) : once(options, *request);
}

}  // namespace

void add_top(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<TopOptions>();
  auto* top = app.add_subcommand("top", "A live view of the node and its pods");
  top->group(kInspectGroup);
  std::vector<std::string> names;
  for (const PodColumn& column : pod_columns())
    names.emplace_back(column.name);
  top->add_flag("--once", options->once, "Print one frame and exit (takes a second)");
  top->add_flag("--plain", options->plain,
                "Labelled lines instead of a full screen, for screen readers; every five seconds");
  top->add_flag("--json", options->json, "The status document as JSON, a line each second");
  top->add_option("-s,--sort", options->sort, "Sort by this column")->check_member(names);
  top->add_option("-c,--columns", options->columns,
                  "Show these columns: names with commas between");
  top->add_option("-f,--filter", options->filter,
                  "Only pods with these words in namespace, name, QoS class or state");
  top->add_option("-p,--pod", options->pod,
                  "Open the view of one pod: NAMESPACE/NAME, name or uid");
  top->add_option("-d,--delay", options->delay, "Seconds between updates")->check_positive();
  top->add_flag("--mouse", options->mouse, "React to clicks and the wheel");
  top->callback([&chosen, options] { chosen = [options] { return run_top(*options); }; });
}

}  // namespace headroom::ctl
