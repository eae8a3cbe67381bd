// SPDX-License-Identifier: Apache-2.0
#include "report/process_usage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace headroom::report {
namespace {

Duration to_duration(const timeval& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

// statm: "size resident shared …", in pages.
std::optional<std::uint64_t> resident_pages(std::string_view statm) {
  const auto space = statm.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  statm.remove_prefix(space + 1);
  std::uint64_t pages = 0;
  const auto parsed = std::from_chars(statm.data(), statm.data() + statm.size(), pages);
  return parsed.ec == std::errc{} ? std::optional(pages) : std::nullopt;
}

}  // namespace

ProcessUsageMeter::ProcessUsageMeter() : statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

void ProcessUsageMeter::read(ProcessUsage& cost) const {
  // The main thread is the loop's.
  const int policy = ::sched_getscheduler(::getpid()) & ~SCHED_RESET_ON_FORK;
  cost.real_time = policy == SCHED_FIFO || policy == SCHED_RR;
  rusage usage{};
  cost.cpu.reset();
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    cost.cpu = to_duration(usage.ru_utime) + to_duration(usage.ru_stime);
  cost.resident.reset();
  std::array<char, 128> text{};
  const ssize_t length = ::pread(statm_.get(), text.data(), text.size(), 0);
  if (length <= 0) return;
  if (const auto pages = resident_pages({text.data(), static_cast<std::size_t>(length)}))
    cost.resident = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace headroom::report
