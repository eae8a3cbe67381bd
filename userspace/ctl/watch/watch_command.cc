// SPDX-License-Identifier: Apache-2.0
// headroomctl watch: asks headroomd once a second for what is new, and prints it or passes it to a
// command. headroomd itself runs no command and uses no network for this: whatever a command does,
// or however long it takes, the daemon only keeps the last events.
#include "act/exec/child_process.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "ctl/watch/event_cursor.h"

#include <headroom/decision.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kPeriod{1};
constexpr std::chrono::seconds kCommandTimeout{30};
constexpr std::chrono::seconds kLongestPause{60};  // between two attempts
const std::vector<std::string> kTypes{"eviction", "condition", "drift", "oom_kill"};

struct WatchOptions {
  bool json = false;
  std::size_t last = 0;            // events before now
  std::vector<std::string> types;  // empty: all
  std::string command;
  std::size_t attempts = 10;
  std::string state;  // a file
};

volatile std::sig_atomic_t stopped = 0;
void stop_watching(int) {
  stopped = 1;
}

// Ends early after a signal.
void pause_for(std::chrono::seconds time) {
  for (auto left = std::chrono::milliseconds(time); left.count() > 0 && !stopped;) {
    constexpr std::chrono::milliseconds kStep{100};
    std::this_thread::sleep_for(kStep);
    left -= kStep;
  }
}

// The event is a file in memory, so that a command that does not read it cannot delay this program.
Result<Fd> input_of(const std::string& text) {
  Fd file(::memfd_create("event", MFD_CLOEXEC));
  if (!file) return errno_failure("create the command's input", errno);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return errno_failure("write the command's input", errno);
  return file;
}

// "" if it succeeded.
std::string run_once(const std::string& command, const std::string& event) {
  const auto input = input_of(event);
  if (!input) return input.error().what;
  auto child = act::Child::start({.argv = {"/bin/sh", "-c", command}, .input = input->get()});
  if (!child) return child.error().what;
  const int error = child->wait(observe::now() + kCommandTimeout, &observe::now, {});
  if (error == 0) return "";
  if (error & Outcome::kExitStatus)
    return fmt::format("exit status {}", error & ~Outcome::kExitStatus);
  return std::strerror(error);
}

// Tries again after 1 s, 2 s, 4 s …, up to a minute.
void run_until_done(const WatchOptions& options, const Json& event) {
  const std::string text = to_json_text(event) + '\n';
  std::chrono::seconds wait{1};
  std::string error;
  for (std::size_t attempt = 1; attempt <= options.attempts && !stopped; ++attempt) {
    error = run_once(options.command, text);
    if (error.empty()) return;
    if (attempt < options.attempts) pause_for(wait);
    wait = std::min(wait * 2, kLongestPause);
  }
  print_error(
      Error{fmt::format("the command failed {} times for event {}: {}; the event is dropped",
                        options.attempts, event.value("seq", std::uint64_t{0}), error)});
}

class Watcher {
 public:
  explicit Watcher(const WatchOptions& options) : options_(options) {
    if (options.state.empty()) return;
    std::ifstream file(options.state);
    cursor_ = EventCursor::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  // The exit status.
  int run() {
    while (!stopped) {
      bool ask_again = false;
      if (auto page = next_page()) {
        down_ = false;
        ask_again = handle(std::move(*page));
        if (std::ferror(stdout)) return kFailed;  // the reader is gone
      } else if (!cursor_.begun() && options_.command.empty()) {
        return print_error(page.error());
      } else if (!down_) {
        down_ = true;
        print_error(page.error());
      }
      if (!ask_again) pause_for(kPeriod);
    }
    return 0;
  }

 private:
  Result<EventPage> next_page() {
    if (!cursor_.begun()) {
      constexpr std::uint64_t kNone = INT64_MAX;  // no event has this number
      const auto document = fetch_events(kNone);
      if (!document) return tl::make_unexpected(document.error());
      const auto page = parse_event_page(*document);
      if (!page) return page;
      cursor_.begin(*page, options_.last);
    }
    const auto document = fetch_events(cursor_.after());
    if (!document) return tl::make_unexpected(document.error());
    return parse_event_page(*document);
  }

  // True: there are more events.
  bool handle(EventPage page) {
    EventCursor position = cursor_;
    NewEvents found = cursor_.take(std::move(page));
    if (found.missed > 0)
      std::fprintf(stderr, "headroomctl: headroomd no longer has %llu events: they are missed\n",
                   static_cast<unsigned long long>(found.missed));
    for (const Json& event : found.events) {
      if (stopped) {
        cursor_ = position;  // the rest is handled by the next run
        return false;
      }
      if (is_wanted(event)) deliver(event);
      position = cursor_;
      position.set_after(event.value("seq", std::uint64_t{0}));
      keep(position);
    }
    return found.ask_again;
  }

  bool is_wanted(const Json& event) const {
    const std::string type = event.value("type", "");
    return options_.types.empty() ||
           std::find(options_.types.begin(), options_.types.end(), type) != options_.types.end();
  }

  void deliver(const Json& event) const {
    if (!options_.command.empty()) return run_until_done(options_, event);
    const std::string line = options_.json ? to_json_text(event) : event_line(event);
    std::puts(line.c_str());
    std::fflush(stdout);
  }

  void keep(const EventCursor& position) {
    if (options_.state.empty()) return;
    const auto written = write_atomically(options_.state, position.text());
    if (!written && !state_failed_) print_error(written.error());
    state_failed_ = !written;
  }

  const WatchOptions& options_;
  EventCursor cursor_;
  bool down_ = false;  // headroomd did not answer; reported once
  bool state_failed_ = false;
};

int run_watch(const WatchOptions& options) {
  struct sigaction action {};
  action.sa_handler = stop_watching;
  for (const int signal : {SIGINT, SIGTERM})
    ::sigaction(signal, &action, nullptr);
  return Watcher(options).run();
}

}  // namespace

void add_watch(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<WatchOptions>();
  auto* watch =
      app.add_subcommand("watch", "Events as they come: evictions, conditions, drift, OOM kills");
  watch->group(kInspectGroup);
  auto* json = watch->add_flag("--json", options->json, "Each event as JSON, one on a line");
  watch->add_option("-n,--last", options->last, "Begin with so many events before now");
  watch->add_option("-t,--type", options->types, "Only events of this type; may be given again")
      ->check_member(kTypes);
  auto* command = watch->add_option(
      "-c,--command", options->command,
      "Run this shell command for each event, with its JSON as standard input, until it succeeds");
  command->excludes(json);
  watch->add_option("--attempts", options->attempts, "Drop an event after so many failed attempts")
      ->check_positive()
      ->needs(command)
      ->capture_default_str();
  watch->add_option("--state", options->state,
                    "Keep in this file which events were handled, and continue there");
  watch->callback([&chosen, options] { chosen = [options] { return run_watch(*options); }; });
}

}  // namespace headroom::ctl
