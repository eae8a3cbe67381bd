// SPDX-License-Identifier: Apache-2.0
#include "config/sections/sections.h"
#include "config/yaml/located_value.h"
#include "judge/admission/taints.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::config {
namespace {

constexpr std::array<Choice<TaintEffect>, 3> kEffects{
    {{"NoSchedule", TaintEffect::kNoSchedule},
     {"PreferNoSchedule", TaintEffect::kPreferNoSchedule},
     {"NoExecute", TaintEffect::kNoExecute}}};

void require_value(const Section& section, std::string_view key) {
  if (!section.has(key)) section.add_error_at(section.line(), "missing " + section.path_of(key));
}

bool same_key_and_effect(const Taint& a, const Taint& b) {
  return a.key == b.key && a.effect == b.effect;
}

void read_taint(const Section& section, std::vector<Taint>& taints, Diagnostics& warnings) {
  static constexpr std::array<std::string_view, 4> kKnown{"key", "value", "effect", "timeAdded"};
  section.warn_of_unknown_keys(kKnown, kKnown, warnings);
  require_value(section, "key");
  require_value(section, "effect");
  const auto key = section.string("key");
  const auto effect = section.choice<TaintEffect>("effect", kEffects);
  const auto value = section.string("value");
  if (!key || !effect || (section.has("value") && !value)) return;
  const Taint taint{*key, value.value_or(""), *effect};
  if (const std::string what = taint_error(taint); !what.empty())
    return section.add_error_at(section.line(), section.path_of("key") + ": " + what);
  const auto duplicate = std::find_if(taints.begin(), taints.end(), [&](const Taint& other) {
    return same_key_and_effect(other, taint);
  });
  if (duplicate != taints.end())
    return section.add_error("key", "there is " + to_string(*duplicate) + " already");
  taints.push_back(taint);
}

void read_taints(const Section& document, Config& config, Diagnostics& warnings) {
  const auto sections = document.list_of_maps("registerWithTaints");
  if (!sections) return;
  for (const Section& section : *sections)
    read_taint(section, config.taints, warnings);
}

constexpr auto kDiskKeys = std::to_array<std::string_view>(
    {"nodefs", "imagefs", "containerfs", "volumes", "logs", "rootfs", "hostPaths", "measurePeriod",
     "walkRate", "removeEmptyDirs"});
constexpr auto kReclaimCommandKeys =
    std::to_array<std::string_view>({"containers", "images", "timeout", "memoryLimit", "user"});

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

void read_node(const Section& document, Config& config, Diagnostics& warnings) {
  read_taints(document, config, warnings);
  if (const auto pods = document.integer("maxPods", 0, Int32::max())) config.max_pods = *pods;
  if (const auto pods = document.integer("podsPerCore", 0, Int32::max()))
    config.pods_per_core = *pods;
}

void read_node_identity(const Section& headroom, Config& config) {
  if (const auto name = headroom.string("nodeName")) config.node_name = *name;
  if (auto strings = headroom.map_of_strings("nodeLabels")) {
    config.node_labels.clear();
    for (LocatedText& word : *strings) {
      // Labels and taints are spelled by the same rules.
      const std::string what = taint_error({word.key, word.text, TaintEffect::kNoSchedule});
      if (!what.empty())
        headroom.add_error_at(word.line, headroom.path_of("nodeLabels") + ": " + what);
      config.node_labels.emplace(std::move(word.key), std::move(word.text));
    }
  }
  const auto file = headroom.string("nodeStatus");
  if (!file) return;
  if (file->empty() || file->starts_with("/"))
    config.node_status = *file;
  else
    headroom.add_error(
        "nodeStatus", "expected an absolute path, or nothing for no file, found \"" + *file + "\"");
}

std::span<const std::string_view> disk_keys() {
  return kDiskKeys;
}

std::span<const std::string_view> reclaim_keys() {
  return kReclaimCommandKeys;
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
  section->reject_unknown_keys(kReclaimCommandKeys);
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
  if (const auto user = section->string("user")) {
    if (user->empty())
      section->add_error("user", "must be the name of a user");
    else
      config.reclaim.user = *user;
  }
}

}  // namespace headroom::config
