// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include "base/file_io.h"
#include "base/human_readable.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "hr-";

std::string thread_part(const fs::path& task) {
  std::string name;
  std::getline(std::ifstream(task / "comm"), name);
  if (name.starts_with(kPrefix)) return name.substr(kPrefix.size());
  return "";
}

// schedstat: "time-on-cpu time-waiting timeslices", in nanoseconds.
std::optional<Duration> cpu_of(const fs::path& task) {
  std::ifstream file(task / "schedstat");
  std::int64_t ns = 0;
  if (!(file >> ns)) return std::nullopt;
  return Duration(ns);
}

void add_cpu_time(std::vector<ThreadCpuTime>& parts, const std::string& part, Duration cpu) {
  for (ThreadCpuTime& each : parts)
    if (each.part == part) {
      each.cpu += cpu;
      return;
    }
  parts.push_back({part, cpu});
}

Duration process_cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

}  // namespace

void set_thread_name(const char* part) {
  ::pthread_setname_np(::pthread_self(), (std::string(kPrefix) + part).c_str());
}

std::vector<ThreadCpuTime> cpu_time_by_thread() {
  std::vector<ThreadCpuTime> parts;
  Duration rest = process_cpu_time();
  std::error_code error;
  const std::string own = std::to_string(::getpid());
  for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
    const auto cpu = cpu_of(task.path());
    if (!cpu) return {};
    const std::string part = task.path().filename() == own ? "loop" : thread_part(task.path());
    if (part.empty()) continue;
    add_cpu_time(parts, part, *cpu);
    rest -= *cpu;
  }
  if (error) return {};
  // Threads that ended count here, so the sum of all parts only grows (by the clocks' grain).
  parts.push_back({"other", std::max(rest, Duration::zero())});
  return parts;
}

}  // namespace headroom::report

namespace headroom {
namespace {

// Fields after the name, which may hold blanks and brackets: state is the third of the line.
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
  // A process chooses its name: any bytes.
  const std::size_t length = std::min(close - open - 1, stat.comm.size() - 1);
  const std::string comm = printable(line.substr(open + 1, length));  // short: not on the heap
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

int open_process(ProcessIdentity name) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, name.pid, 0)));
  if (!process) return -1;
  // Held first, then looked at: if it is the one now, the descriptor is of no other.
  const auto stat = process_stat(name.pid);
  if (!stat || stat->name != name || stat->zombie) return -1;
  return process.release();
}

}  // namespace headroom
