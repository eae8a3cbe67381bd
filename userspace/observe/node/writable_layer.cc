// SPDX-License-Identifier: Apache-2.0
#include "observe/node/writable_layer.h"

#include "base/fd.h"
#include "base/mountinfo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

namespace headroom::observe {
namespace {

// The nth word of a line, from 0.
std::string_view word(std::string_view line, int index) {
  for (; index > 0; --index) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return {};
    line.remove_prefix(blank + 1);
  }
  return line.substr(0, line.find(' '));
}

std::optional<std::string> option(std::string_view options, std::string_view key) {
  while (!options.empty()) {
    const std::string_view each = options.substr(0, options.find(','));
    options.remove_prefix(std::min(options.size(), each.size() + 1));
    if (each.starts_with(key)) return unescaped_mount(each.substr(key.size()));
  }
  return std::nullopt;
}

std::optional<std::string> first_pid(const std::string& cgroup) {
  const Fd procs(::open((cgroup + "/cgroup.procs").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> line{};  // the first line of as many as there may be
  const ssize_t size = procs ? ::read(procs.get(), line.data(), line.size()) : -1;
  if (size <= 0) return std::nullopt;
  std::string pid(line.data(), static_cast<std::size_t>(size));
  pid.resize(std::min(pid.size(), pid.find('\n')));
  if (pid == "0") return std::nullopt;  // of another pid namespace
  return pid;
}

std::optional<std::string> read_upper(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/mountinfo");
  return upper_directory(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

std::optional<std::string> upper_directory(std::string_view mountinfo) {
  std::optional<std::string> upper;
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    const std::size_t dash = line.find(" - ");
    if (word(line, 4) != "/" || dash == std::string_view::npos) continue;
    const std::string_view rest = line.substr(dash + 3);
    // What was mounted over the root last is the root.
    upper = word(rest, 0) == "overlay" ? option(word(rest, 2), "upperdir=") : std::nullopt;
  }
  return upper;
}

std::optional<WritableLayers::Root> WritableLayers::root_of(const std::string& cgroup) {
  auto pid = first_pid(cgroup);
  if (!pid) return std::nullopt;
  struct statx root {};
  if (::statx(AT_FDCWD, ("/proc/" + *pid + "/root").c_str(), AT_NO_AUTOMOUNT, STATX_MNT_ID,
              &root) != 0)
    return std::nullopt;
  return Root{.pid = std::move(*pid),
              .mount_id = root.stx_mnt_id,
              .device = makedev(root.stx_dev_major, root.stx_dev_minor)};
}

WritableLayers::Known WritableLayers::refresh(const std::string& cgroup,
                                              const Known* before) const {
  if (before && before->settled() && calls_ % kSettledReadPeriod != 0) return *before;
  Known now{.cgroup = cgroup, .root = root_of(cgroup), .upper = {}};
  if (before && before->root == now.root) {
    now.upper = before->upper;
    now.same = before->same + 1;
  } else if (now.root) {
    now.upper = read_upper(now.root->pid);
  }
  return now;
}

std::vector<std::string> WritableLayers::of(const std::vector<std::string>& cgroups) {
  ++calls_;
  std::vector<std::string> layers;
  std::vector<Known> now;
  now.reserve(cgroups.size());
  for (const std::string& cgroup : cgroups) {
    const auto before = std::find_if(known_.begin(), known_.end(),
                                     [&](const Known& known) { return known.cgroup == cgroup; });
    now.push_back(refresh(cgroup, before == known_.end() ? nullptr : &*before));
    const auto& upper = now.back().upper;
    if (upper && std::find(layers.begin(), layers.end(), *upper) == layers.end())
      layers.push_back(*upper);
  }
  known_ = std::move(now);
  return layers;
}

}  // namespace headroom::observe
