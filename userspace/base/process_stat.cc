// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include "base/fd.h"
#include "base/printable.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

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
