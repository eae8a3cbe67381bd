// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include "base/file_io.h"
#include "base/human_readable.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {
namespace {

Result<std::string> read_file(int directory, const char* file) {
  Fd fd(::openat(directory, file, O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_failure(std::string("open ") + file, errno);
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0) return errno_failure(std::string("read ") + file, errno);
    if (n == 0) return text;
    text.append(chunk, static_cast<std::size_t>(n));
  }
}

}  // namespace

Result<std::vector<pid_t>> pids_of(int directory) {
  auto text = read_file(directory, "cgroup.procs");
  if (!text) return tl::make_unexpected(text.error());
  std::vector<pid_t> pids;
  const char* at = text->data();
  const char* const end = at + text->size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(at, end, pid);
    if (error == std::errc{} && pid > 0) pids.push_back(pid);
    at = next + 1;
  }
  return pids;
}

namespace {

// After pidfd_open() the cgroup is read again: a pid that is still listed is the process of the
// pidfd.
void open_own_pidfds(int directory, std::vector<Fd>& held) {
  const auto first = pids_of(directory);
  if (!first) return;  // threaded or removed: its processes are listed elsewhere or have ended
  std::vector<std::pair<pid_t, Fd>> opened;
  for (const pid_t pid : *first)
    if (Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); fd)
      opened.emplace_back(pid, std::move(fd));
  const auto still_members = pids_of(directory);
  if (!still_members) return;
  for (auto& [pid, fd] : opened)
    if (std::find(still_members->begin(), still_members->end(), pid) != still_members->end())
      held.push_back(std::move(fd));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

void for_each_descendant(int directory, const std::function<void(int)>& visit) {
  visit(directory);
  Fd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return;
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(copy.get()));
  if (!listing) return;
  copy.release();  // the listing owns it now
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const Fd child(::openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (child) for_each_descendant(child.get(), visit);
  }
}

std::vector<Fd> open_pidfds(int cgroup_directory) {
  std::vector<Fd> held;
  for_each_descendant(cgroup_directory, [&](int directory) { open_own_pidfds(directory, held); });
  return held;
}

Result<std::size_t> signal_processes(int cgroup_directory, int signal) {
  // A removed cgroup has no cgroup.procs.
  if (const auto alive = read_file(cgroup_directory, "cgroup.events"); !alive)
    return tl::make_unexpected(alive.error());
  std::size_t sent = 0;
  for (const Fd& process : open_pidfds(cgroup_directory))
    if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) ++sent;
  return sent;
}

}  // namespace headroom

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hr-";

// "" for a thread without a name of ours.
std::string part_of(std::string_view comm) {
  if (!comm.starts_with(kPrefix)) return "";
  comm.remove_prefix(kPrefix.size());
  return std::string(comm.substr(0, comm.find('\n')));
}

// schedstat: "time-on-cpu time-waiting timeslices", in nanoseconds.
Result<ThreadCpuTime> read_thread(const fs::path& task, bool loop) {
  const auto schedstat = read_file(AT_FDCWD, (task / "schedstat").c_str());
  if (!schedstat) return tl::make_unexpected(schedstat.error());
  std::int64_t ns = 0;
  const char* const end = schedstat->data() + schedstat->size();
  if (std::from_chars(schedstat->data(), end, ns).ec != std::errc())
    return failure("read schedstat: no number");
  if (loop) return ThreadCpuTime{"loop", Duration(ns)};
  const auto comm = read_file(AT_FDCWD, (task / "comm").c_str());
  if (!comm) return tl::make_unexpected(comm.error());
  return ThreadCpuTime{part_of(*comm), Duration(ns)};
}

bool has_ended(const Error& error) {
  return error.code == ENOENT || error.code == ESRCH;
}

Duration process_cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

// Adds up the CPU time of threads that are there and of those that have ended.
class ThreadCpuTotals {
 public:
  std::vector<ThreadCpuTime> read() {
    const std::lock_guard lock(mutex_);
    // Read before the threads' times, so that what is left is never too much.
    Duration rest = process_cpu_time();
    if (!read_threads()) return {};
    std::map<std::string, Duration> totals = ended_;
    for (const auto& [thread, used] : threads_)
      totals[used.part] += used.cpu;
    std::vector<ThreadCpuTime> parts;
    for (const auto& [part, cpu] : totals) {
      parts.push_back({part, cpu});
      rest -= cpu;
    }
    other_ = std::max(other_, rest);
    parts.push_back({"other", other_});
    return parts;
  }

 private:
  bool read_threads() {
    std::map<std::string, ThreadCpuTime> now;
    std::error_code error;
    const std::string own = std::to_string(::getpid());
    for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
      const std::string thread = task.path().filename();
      const auto used = read_thread(task.path(), thread == own);
      // One that cannot be read has not ended: its time would be counted again the next time.
      if (!used && !has_ended(used.error())) return false;
      if (used && !used->part.empty()) now[thread] = *used;
    }
    if (error) return false;
    for (const auto& [thread, used] : threads_) {
      const auto still = now.find(thread);
      const bool same =
          still != now.end() && still->second.part == used.part && still->second.cpu >= used.cpu;
      if (!same) ended_[used.part] += used.cpu;
    }
    threads_ = std::move(now);
    return true;
  }

  std::mutex mutex_;
  std::map<std::string, ThreadCpuTime> threads_;  // by id, as of the last call
  std::map<std::string, Duration> ended_;         // by part
  Duration other_{0};
};

}  // namespace

void set_thread_name(const char* part) {
  ::pthread_setname_np(::pthread_self(), (std::string(kPrefix) + part).c_str());
}

std::vector<ThreadCpuTime> cpu_time_by_thread() {
  static ThreadCpuTotals totals;
  return totals.read();
}

}  // namespace headroom::report

namespace headroom {
namespace {

// Numbers of fields of the line (proc(5)). They are counted after the name, which is the second
// field and may contain blanks and brackets.
constexpr int kState = 3, kStartTime = 22, kResident = 24;

}  // namespace

std::optional<ProcessStat> process_stat(pid_t pid) {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return std::nullopt;
  const std::string_view line(text, static_cast<std::size_t>(size));
  const std::size_t open = line.find('('), close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close + 2 >= line.size())
    return std::nullopt;
  ProcessStat stat;
  stat.name.pid = pid;
  // A process can set its name to any bytes.
  const std::size_t length = std::min(close - open - 1, stat.comm.size() - 1);
  const std::string comm = printable(line.substr(open + 1, length));  // no heap: 15 bytes at most
  comm.copy(stat.comm.data(), stat.comm.size() - 1);
  const char* at = line.data() + close + 2;
  const char* const end = line.data() + line.size();
  stat.zombie = *at == 'Z' || *at == 'X';
  for (int field = kState; field < kResident; ++field) {
    if (field == kStartTime) std::from_chars(at, end, stat.name.started);
    at = std::find(at, end, ' ');
    if (at == end) return std::nullopt;
    ++at;
  }
  if (std::from_chars(at, end, stat.resident_pages).ec != std::errc()) return std::nullopt;
  return stat;
}

bool started_before(Instant instant, const ProcessStat& stat) {
  static const auto kTicksPerSecond = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto since_boot = std::chrono::nanoseconds(instant.time_since_epoch()).count();
  return stat.name.started <=
         static_cast<std::uint64_t>(since_boot) / (1'000'000'000u / kTicksPerSecond);
}

int open_process(ProcessIdentity name) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, name.pid, 0)));
  if (!process) return -1;
  // Opened first, then compared: if the start time matches now, the pidfd refers to that process.
  const auto stat = process_stat(name.pid);
  if (!stat || stat->name != name || stat->zombie) return -1;
  return process.release();
}

}  // namespace headroom
