// SPDX-License-Identifier: Apache-2.0
#include "observe/writable_layer.h"

#include "observe/mount_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

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

std::optional<std::string> first_pid(const fs::path& cgroup) {
  std::ifstream procs(cgroup / "cgroup.procs");
  std::string pid;
  if (!std::getline(procs, pid) || pid.empty() || pid == "0") return std::nullopt;
  return pid;
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

std::vector<std::string> writable_layers(const std::string& pod_cgroup_directory) {
  std::vector<std::string> layers;
  std::error_code error;
  for (fs::directory_iterator at(pod_cgroup_directory, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) continue;
    const auto pid = first_pid(at->path());
    if (!pid) continue;
    std::ifstream file("/proc/" + *pid + "/mountinfo");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto upper = upper_directory(text);
    if (upper && std::find(layers.begin(), layers.end(), *upper) == layers.end())
      layers.push_back(std::move(*upper));
  }
  return layers;
}

}  // namespace headroom::observe
