// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/pod_cgroup_tree.h"

#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <fstream>

namespace headroom::observe {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> children_of(const fs::path& cgroup_root, const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(cgroup_root.native() + path, error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_directory(gone)) names.push_back(path + "/" + at->path().filename().native());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<CpuSet> read_set(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto cpus = CpuSet::parse(line);
  if (!cpus || cpus->empty()) return std::nullopt;
  return *cpus;
}

// Of the nearest cgroup, from this one up, that has the controller.
std::optional<CpuSet> effective_set(const fs::path& cgroup_root, const std::string& path,
                                    const char* file) {
  std::error_code error;
  if (!fs::is_directory(cgroup_root.native() + path, error)) return std::nullopt;
  for (std::string at = path;; at.resize(at.rfind('/'))) {
    if (auto set = read_set(cgroup_root.native() + at + file)) return set;
    if (at.find('/') == std::string::npos) return std::nullopt;
  }
}

NodeSet as_nodes(const CpuSet& set) {
  NodeSet nodes;
  for (const Cpu node : set)
    if (node < NodeSet::kMax) nodes = nodes | NodeSet::of(node);
  return nodes;
}

// The kubelet's two names stand for each other, as for PodCgroupParser.
std::vector<std::string> roots_of(std::string_view pods_cgroup) {
  std::string root = "/";
  root += pods_cgroup;
  std::vector<std::string> roots{root};
  if (root == "/kubepods.slice") roots.emplace_back("/kubepods");
  if (root == "/kubepods") roots.emplace_back("/kubepods.slice");
  return roots;
}

void add_sharing(const fs::path& cgroup_root, const std::string& path,
                 const PodCgroupParser& layout, PodTree& tree) {
  tree.sharing.push_back(path);
  for (const std::string& child : children_of(cgroup_root, path))
    if (const auto place = layout.place(child))
      tree.shared_pool_pods.push_back({place->uid, child});
}

}  // namespace

bool is_populated(const fs::path& cgroup_root, const std::string& path) {
  std::ifstream events(cgroup_root.native() + path + "/cgroup.events");
  for (std::string line; std::getline(events, line);)
    if (line == "populated 1") return true;
  return false;
}

PodTree read_pod_tree(const fs::path& cgroup_root, std::string_view pods_cgroup) {
  const PodCgroupParser layout(pods_cgroup);
  PodTree tree;
  for (const std::string& root : roots_of(pods_cgroup)) {
    std::error_code error;
    if (!fs::is_directory(cgroup_root.native() + root, error)) continue;
    tree.roots.push_back(root);
    for (const std::string& path : children_of(cgroup_root, root)) {
      const auto place = layout.place(path);
      if (!place) {
        add_sharing(cgroup_root, path, layout, tree);
        continue;
      }
      PodCgroup pod{place->uid, path, is_populated(cgroup_root, path), {}};
      for (const std::string& child : children_of(cgroup_root, path))
        if (const auto inside = layout.place(child))
          pod.containers.push_back(
              {child, std::string(inside->runtime), std::string(inside->container)});
      tree.pods.push_back(std::move(pod));
    }
  }
  return tree;
}

std::optional<CpuSet> cpus_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  return effective_set(cgroup_root, path, "/cpuset.cpus.effective");
}

std::optional<NodeSet> nodes_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  const auto nodes = effective_set(cgroup_root, path, "/cpuset.mems.effective");
  return nodes ? std::optional(as_nodes(*nodes)) : std::nullopt;
}

std::optional<NodeSet> own_nodes_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(cgroup_root.native() + path, error)) return std::nullopt;
  return as_nodes(read_set(cgroup_root.native() + path + "/cpuset.mems").value_or(CpuSet()));
}

}  // namespace headroom::observe
