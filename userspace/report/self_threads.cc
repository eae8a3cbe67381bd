// SPDX-License-Identifier: Apache-2.0
#include "report/self_threads.h"

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

std::string part_of(const fs::path& task) {
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

void charge(std::vector<PartCost>& parts, const std::string& part, Duration cpu) {
  for (PartCost& each : parts)
    if (each.part == part) {
      each.cpu += cpu;
      return;
    }
  parts.push_back({part, cpu});
}

Duration all_of_us() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto time = [](const timeval& value) {
    return std::chrono::seconds(value.tv_sec) + std::chrono::microseconds(value.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

}  // namespace

void name_thread(const char* part) {
  ::pthread_setname_np(::pthread_self(), (std::string(kPrefix) + part).c_str());
}

std::vector<PartCost> cost_by_part() {
  std::vector<PartCost> parts;
  Duration rest = all_of_us();
  std::error_code error;
  const std::string own = std::to_string(::getpid());
  for (const auto& task : fs::directory_iterator("/proc/self/task", error)) {
    const auto cpu = cpu_of(task.path());
    if (!cpu) return {};
    const std::string part = task.path().filename() == own ? "loop" : part_of(task.path());
    if (part.empty()) continue;
    charge(parts, part, *cpu);
    rest -= *cpu;
  }
  if (error) return {};
  // Threads that ended count here, so the sum of all parts only grows (by the clocks' grain).
  parts.push_back({"other", std::max(rest, Duration::zero())});
  return parts;
}

}  // namespace headroom::report
