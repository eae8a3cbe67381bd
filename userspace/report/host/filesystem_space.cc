// SPDX-License-Identifier: Apache-2.0
#include "report/host/filesystem_space.h"

#include "base/mountinfo.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace headroom::report {
namespace {

bool is_at_or_below(const std::filesystem::path& path, const std::filesystem::path& point) {
  const auto relative = path.lexically_relative(point);
  return !relative.empty() && *relative.begin() != "..";
}

std::optional<FilesystemSpace> space_of(const std::filesystem::path& path) {
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) < 0) return std::nullopt;
  FilesystemSpace result{.device = {},
                         .capacity = space.f_blocks * space.f_frsize,
                         .used = (space.f_blocks - space.f_bfree) * space.f_frsize,
                         .inodes = {},
                         .inodes_free = {}};
  if (space.f_files > 0) {
    result.inodes = space.f_files;
    result.inodes_free = space.f_ffree;
  }
  return result;
}

}  // namespace

std::string device_of(const std::filesystem::path& path, std::string_view mountinfo) {
  std::string device;
  std::size_t longest = 0;
  for (const Mount& mount : parse_mounts(mountinfo)) {
    if (mount.point.size() < longest || !is_at_or_below(path, mount.point)) continue;
    longest = mount.point.size();
    device = mount.source;
  }
  return device;
}

std::optional<FilesystemSpace> FilesystemSpaces::of(Signal signal,
                                                    const Observations& observations) const {
  const auto found = std::ranges::find(places_, signal, &Place::signal);
  if (found == places_.end() || !headroom::of(observations, signal)) return std::nullopt;
  return space_of(found->path);
}

std::vector<FilesystemSpace> FilesystemSpaces::all(const Observations& observations) const {
  std::ifstream file("/proc/self/mountinfo");
  const std::string mounts{std::istreambuf_iterator<char>(file), {}};
  std::vector<FilesystemSpace> spaces;
  for (const Place& place : places_) {
    auto space = of(place.signal, observations);
    if (!space) continue;
    std::error_code error;
    const auto path = std::filesystem::canonical(place.path, error);
    space->device = device_of(error ? place.path : path, mounts);
    if (std::ranges::find(spaces, space->device, &FilesystemSpace::device) == spaces.end())
      spaces.push_back(std::move(*space));
  }
  return spaces;
}

}  // namespace headroom::report
