// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"
#include "base/human_readable.h"
#include "base/json_text.h"
#include "ctl/common/argument_parser.h"
#include "ctl/common/commands.h"
#include "ctl/common/dbus_client.h"
#include "ctl/common/print_error.h"
#include "judge/resources/go_duration.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace headroom::ctl {
namespace {

struct RecordOptions {
  std::string file = "headroom.rec";
  std::string length = "60s";
  bool json = false;
};

// Shows the progress on one line of the terminal, which it overwrites. Shows nothing if stderr is
// not a terminal.
class Progress {
 public:
  explicit Progress(std::chrono::seconds length) : length_(length) {}
  ~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::size_t bytes) {
    const auto passed = std::chrono::floor<std::chrono::seconds>(Clock::now() - began_);
    if (!terminal_ || passed == passed_) return;
    passed_ = passed;
    shown_ = true;
    std::fprintf(stderr, "\r\033[K%s of %s, %s", report::human(Duration(passed)).c_str(),
                 report::human(Duration(length_)).c_str(),
                 report::human(Bytes{static_cast<std::int64_t>(bytes)}).c_str());
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::chrono::seconds length_;
  const Clock::time_point began_ = Clock::now();
  const bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::chrono::seconds passed_{0};
  bool shown_ = false;
};

Result<Fd> open_output(const std::string& file) {
  if (file == "-") return Fd(::dup(STDOUT_FILENO));
  Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out) return errno_failure("open " + file, errno);
  return out;
}

// Copies until headroomd closes its end of the pipe. Returns the number of bytes.
Result<std::size_t> copy(const Fd& from, const Fd& to, Progress& progress) {
  std::array<char, 65536> buffer;
  std::size_t total = 0;
  while (true) {
    const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_failure("read the recording", errno);
    if (n == 0) return total;
    if (const int error = write_all(to.get(), {buffer.data(), static_cast<std::size_t>(n)}))
      return errno_failure("write the recording", error);
    total += static_cast<std::size_t>(n);
    progress.show(total);
  }
}

void print(const RecordOptions& options, std::size_t size) {
  if (!options.json) {
    std::fprintf(stderr, "headroomctl: %zu bytes recorded; headroomctl replay %s\n", size,
                 options.file.c_str());
    return;
  }
  const nlohmann::ordered_json json{{"file", options.file}, {"bytes", size}};
  std::puts(to_json_text(json).c_str());
}

int run_record(const RecordOptions& options) {
  const auto length = parse_go_duration(options.length);
  if (!length || *length < std::chrono::seconds(1))
    return print_usage_error(
        Error{"--for " + options.length + ": expected at least one second, such as 90s or 5m"});
  if (options.json && options.file == "-")
    return print_usage_error(
        Error{"--json: the recording goes to standard output; name a file with --output"});
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return print_error(Error{std::string("make a pipe: ") + std::strerror(errno), errno});
  Fd from(ends[0]), to(ends[1]);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*length);
  if (const auto answer = start_recording(to.get(), seconds); !answer)
    return print_error(answer.error());
  to.reset();  // headroomd has its own descriptor
  // The file is opened only now: a refused recording must not truncate an earlier recording.
  const auto out = open_output(options.file);
  if (!out) return print_error(out.error());
  const auto size = [&] {
    Progress progress(seconds);
    return copy(from, *out, progress);
  }();
  if (!size) return print_error(size.error());
  print(options, *size);
  return 0;
}

}  // namespace

void add_record(ArgumentParser& app, CliCommand& chosen) {
  auto options = std::make_shared<RecordOptions>();
  auto* record = app.add_subcommand("record", "Record what headroomd reads and decides");
  record->group(kQueryGroup);
  record->add_option("-o,--output", options->file, "The file; - is standard output")
      ->capture_default_str();
  record->add_option("--for", options->length, "How long: 90s, 5m; an interrupt ends it early")
      ->capture_default_str();
  record->add_flag("--json", options->json, "The file's name and size, as JSON");
  record->callback([&chosen, options] { chosen = [options] { return run_record(*options); }; });
}

}  // namespace headroom::ctl
