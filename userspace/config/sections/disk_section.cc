// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/scalar_values.h"

#include <array>

namespace headroom::config {
namespace {

constexpr auto kDiskKeys = std::to_array<std::string_view>(
    {"nodefs", "imagefs", "containerfs", "volumes", "logs", "rootfs", "hostPaths", "measurePeriod",
     "walkRate", "removeEmptyDirs"});
constexpr auto kReclaimKeys =
    std::to_array<std::string_view>({"containers", "images", "timeout", "memoryLimit"});

void read_pattern(const Section& section, std::string_view key, std::string& pattern) {
  const auto text = section.string(key);
  if (!text) return;
  const std::string error_text = pattern_error(*text);
  if (error_text.empty())
    pattern = *text;
  else
    section.add_error(key, error_text + ", found \"" + *text + "\"");
}

// A pattern that does not contain the pod would charge each pod with the files of all.
void require_distinct(const Section& section, std::string_view key, const std::string& pattern,
                      std::string_view part) {
  if (!section.has(key) || pattern.empty()) return;
  const bool names_pod =
      pattern.find("{uid}") != std::string::npos || pattern.find("{name}") != std::string::npos;
  if (!names_pod)
    section.add_error(key, "expected {uid} or {name} in it, else all pods share a path");
  if (pattern.find(part) == std::string::npos)
    section.add_error(key, "expected " + std::string(part) +
                               " in it, else all of a pod's share a "
                               "path");
}

void read_command(const Section& section, std::string_view key, std::vector<std::string>& argv) {
  const auto strings = section.list_of_strings(key);
  if (!strings) return;
  argv.clear();
  for (const LocatedText& word : *strings)
    argv.push_back(word.text);
  if (argv.empty())
    section.add_error(key, "expected a command and its arguments, found an empty list");
  else if (!argv.front().starts_with("/"))
    section.add_error(key,
                      "expected the command's absolute path first, found \"" + argv.front() + "\"");
}

}  // namespace

std::span<const std::string_view> disk_keys() {
  return kDiskKeys;
}

std::span<const std::string_view> reclaim_keys() {
  return kReclaimKeys;
}

void read_disk(const Section& headroom, Config& config) {
  const auto section = headroom.map("disk");
  if (!section) return;
  section->reject_unknown_keys(kDiskKeys);
  DiskConfig& disk = config.disk;
  read_absolute_path(*section, "nodefs", disk.nodefs);
  read_absolute_path(*section, "imagefs", disk.imagefs);
  read_absolute_path(*section, "containerfs", disk.containerfs);
  read_pattern(*section, "volumes", disk.paths.volumes);
  read_pattern(*section, "logs", disk.paths.logs);
  read_pattern(*section, "rootfs", disk.paths.rootfs);
  require_distinct(*section, "volumes", disk.paths.volumes, "{volume}");
  require_distinct(*section, "logs", disk.paths.logs, "{container}");
  require_distinct(*section, "rootfs", disk.paths.rootfs, "{container}");
  if (const auto count = section->boolean("hostPaths")) disk.host_paths = *count;
  read_positive_duration(*section, "measurePeriod", disk.measure_period);
  if (const auto rate = section->integer("walkRate", 1))
    disk.walk_rate = static_cast<std::uint64_t>(*rate);
  if (const auto remove = section->boolean("removeEmptyDirs"))
    config.policy.remove_empty_dirs = *remove;
}

void read_reclaim(const Section& headroom, Config& config) {
  const auto section = headroom.map("reclaim");
  if (!section) return;
  section->reject_unknown_keys(kReclaimKeys);
  read_command(*section, "containers", config.reclaim.containers);
  read_command(*section, "images", config.reclaim.images);
  config.policy.can_reclaim_containers = !config.reclaim.containers.empty();
  config.policy.can_reclaim_images = !config.reclaim.images.empty();
  read_positive_duration(*section, "timeout", config.policy.reclaim_timeout);
  if (const auto memory = section->quantity("memoryLimit")) {
    if (memory->sign() > 0)
      config.reclaim.memory = static_cast<std::uint64_t>(memory->value());
    else
      section->add_error("memoryLimit", "must be more than zero bytes");
  }
}

}  // namespace headroom::config
