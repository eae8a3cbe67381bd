// SPDX-License-Identifier: Apache-2.0
#include "base/thread_cpu_time.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
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
