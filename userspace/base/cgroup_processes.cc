// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup_processes.h"

#include "base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
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

// pidfd_open() first, then ask the cgroup again: a pid still listed is the process we hold.
void open_own_pidfds(int directory, std::vector<Fd>& held) {
  const auto first = pids_of(directory);
  if (!first) return;  // threaded or vanished: its processes are listed elsewhere or gone
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
  // A cgroup that vanished has no cgroup.procs to open.
  if (const auto alive = read_file(cgroup_directory, "cgroup.events"); !alive)
    return tl::make_unexpected(alive.error());
  std::size_t sent = 0;
  for (const Fd& process : open_pidfds(cgroup_directory))
    if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) == 0) ++sent;
  return sent;
}

}  // namespace headroom
