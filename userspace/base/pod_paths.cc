// SPDX-License-Identifier: Apache-2.0
#include "base/pod_paths.h"

#include <algorithm>
#include <array>
#include <optional>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 6> kPlaceholders{"uid",       "namespace", "name",
                                                        "container", "volume",    "plugin"};

struct Names {
  const Pod& pod;
  std::string_view container = {};
  std::string_view volume = {};
  std::string_view plugin = {};

  std::string_view of(std::string_view placeholder) const {
    if (placeholder == "uid") return pod.uid;
    if (placeholder == "namespace") return pod.pod_namespace;
    if (placeholder == "name") return pod.name;
    if (placeholder == "container") return container;
    if (placeholder == "volume") return volume;
    if (placeholder == "plugin") return plugin;
    return {};
  }
};

// A name that would leave the directory: a manifest must not be able to refer to /etc.
bool is_unsafe_component(std::string_view name) {
  return name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos;
}

// "" if a placeholder has no value, or an unsafe one.
std::string expand_pattern(std::string_view pattern, const Names& names) {
  std::string path;
  while (!pattern.empty()) {
    const std::size_t open = pattern.find('{');
    const std::size_t close = pattern.find('}', open);
    path += pattern.substr(0, open);
    if (open == std::string_view::npos || close == std::string_view::npos) return path;
    const std::string_view name = names.of(pattern.substr(open + 1, close - open - 1));
    if (is_unsafe_component(name)) return "";
    path += name;
    pattern.remove_prefix(close + 1);
  }
  return path;
}

std::string_view plugin_of(Volume::Kind kind) {
  switch (kind) {
    case Volume::Kind::kEmptyDir:
      return "empty-dir";
    case Volume::Kind::kConfigMap:
      return "configmap";
    case Volume::Kind::kGitRepo:
      return "git-repo";
    case Volume::Kind::kHostPath:
    case Volume::Kind::kOther:
      return "";
  }
  return "";
}

}  // namespace

std::string volume_path(const PodPaths& paths, const Pod& pod, const Volume& volume) {
  if (volume.kind == Volume::Kind::kHostPath) return volume.host_path;
  return expand_pattern(paths.volumes,
                        {.pod = pod, .volume = volume.name, .plugin = plugin_of(volume.kind)});
}

std::string logs_path(const PodPaths& paths, const Pod& pod, std::string_view container) {
  return expand_pattern(pod.logs_path.empty() ? paths.logs : pod.logs_path,
                        {.pod = pod, .container = container});
}

std::string rootfs_path(const PodPaths& paths, const Pod& pod, std::string_view container) {
  return expand_pattern(pod.rootfs_path.empty() ? paths.rootfs : pod.rootfs_path,
                        {.pod = pod, .container = container});
}

std::string pattern_error(std::string_view pattern) {
  if (!pattern.starts_with("/")) return "expected an absolute path";
  if ((std::string(pattern) + "/").find("/../") != std::string::npos)
    return "expected a path without \"..\"";
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    const std::size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) return "a { without its }";
    const std::string_view name = pattern.substr(open + 1, close - open - 1);
    if (std::find(kPlaceholders.begin(), kPlaceholders.end(), name) == kPlaceholders.end())
      return "unknown placeholder {" + std::string(name) +
             "}: there are {uid}, {namespace}, {name}, {container}, {volume} and {plugin}";
  }
  return "";
}

}  // namespace headroom
