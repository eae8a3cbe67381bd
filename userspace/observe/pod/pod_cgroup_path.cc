// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

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
  for (std::string at = path;; at.resize(at.rfind('/'))) {
    if (auto set = read_set(cgroup_root.native() + at + file)) return set;
    if (at.find('/') == std::string::npos) return std::nullopt;
  }
}

bool exists(const fs::path& cgroup_root, const std::string& path) {
  return cgroup_id_at(cgroup_root.native() + path).has_value();
}

bool exists(const fs::path& cgroup_root, const SeenCgroup& cgroup) {
  return cgroup_id_at(cgroup_root.native() + cgroup.path) == cgroup.id;
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

void add_id(const fs::path& cgroup_root, const std::string& path, PodTree& tree) {
  if (const auto id = cgroup_id_at(cgroup_root.native() + path)) tree.ids.emplace(path, *id);
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
    for (std::size_t slash = 0; slash != std::string::npos; slash = root.find('/', slash + 1))
      if (slash != 0) add_id(cgroup_root, root.substr(0, slash), tree);
    add_id(cgroup_root, root, tree);
    if (!tree.ids.contains(root)) continue;
    tree.roots.push_back(root);
    for (const std::string& path : children_of(cgroup_root, root)) {
      add_id(cgroup_root, path, tree);
      const auto place = layout.place(path);
      if (!place) {
        add_sharing(cgroup_root, path, layout, tree);
        continue;
      }
      PodCgroup pod{place->uid, path, is_populated(cgroup_root, path), {}};
      for (const std::string& child : children_of(cgroup_root, path)) {
        add_id(cgroup_root, child, tree);
        if (const auto inside = layout.place(child))
          pod.containers.push_back(
              {child, std::string(inside->runtime), std::string(inside->container)});
      }
      tree.pods.push_back(std::move(pod));
    }
  }
  return tree;
}

namespace {

constexpr const char* kCpus = "/cpuset.cpus.effective";

NodeSet read_own_nodes(const fs::path& cgroup_root, const std::string& path) {
  return as_nodes(read_set(cgroup_root.native() + path + "/cpuset.mems").value_or(CpuSet()));
}

}  // namespace

std::optional<CpuSet> cpus_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  return exists(cgroup_root, path) ? effective_set(cgroup_root, path, kCpus) : std::nullopt;
}

std::optional<CpuSet> cpus_of_cgroup(const fs::path& cgroup_root, const SeenCgroup& cgroup) {
  return exists(cgroup_root, cgroup) ? effective_set(cgroup_root, cgroup.path, kCpus)
                                     : std::nullopt;
}

std::optional<NodeSet> nodes_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  if (!exists(cgroup_root, path)) return std::nullopt;
  const auto nodes = effective_set(cgroup_root, path, "/cpuset.mems.effective");
  return nodes ? std::optional(as_nodes(*nodes)) : std::nullopt;
}

std::optional<NodeSet> own_nodes_of_cgroup(const fs::path& cgroup_root, const std::string& path) {
  if (!exists(cgroup_root, path)) return std::nullopt;
  return read_own_nodes(cgroup_root, path);
}

std::optional<NodeSet> own_nodes_of_cgroup(const fs::path& cgroup_root, const SeenCgroup& cgroup) {
  if (!exists(cgroup_root, cgroup)) return std::nullopt;
  return read_own_nodes(cgroup_root, cgroup.path);
}

namespace {

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kScope = ".scope";

// Takes the first component off the path.
std::string_view pop(std::string_view& path) {
  const std::string_view component = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), component.size() + 1));
  return component;
}

bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool strip_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What stands for the tier in names, and which class it holds.
struct QosTier {
  std::string_view name;
  QosClass qos;
};
constexpr std::array<QosTier, 2> kTiers{
    {{"burstable", QosClass::kBurstable}, {"besteffort", QosClass::kBestEffort}}};

// "kubepods-burstable.slice" → its Tier.
const QosTier* tier_named(std::string_view component, std::string_view stem, bool systemd) {
  if (systemd) {
    const bool ours = strip_suffix(component, kSlice) && strip_prefix(component, stem) &&
                      strip_prefix(component, "-");
    if (!ours) return nullptr;
  }
  for (const QosTier& tier : kTiers)
    if (tier.name == component) return &tier;
  return nullptr;
}

// "kubepods-burstable-pod<uid>.slice" → "<uid>", as spelled there. `tier` may be null.
std::optional<std::string_view> encoded_uid(std::string_view component, std::string_view stem,
                                            bool systemd, const QosTier* tier) {
  if (systemd) {
    const bool ours =
        strip_suffix(component, kSlice) && strip_prefix(component, stem) &&
        strip_prefix(component, "-") &&
        (!tier || (strip_prefix(component, tier->name) && strip_prefix(component, "-")));
    if (!ours) return std::nullopt;
  }
  if (!strip_prefix(component, "pod") || component.empty()) return std::nullopt;
  return component;
}

// Any word will do for a uid, as it does for the kubelet (it looks for "pod" and takes the rest);
// but what cannot be spelled back is none.
std::optional<std::string> decode_uid(std::string_view spelled, bool systemd) {
  std::string uid(spelled);
  const char dash = systemd ? '_' : '-';
  for (char& c : uid) {
    if (c == dash)
      c = '-';
    else if (!is_letter_or_digit(c))
      return std::nullopt;
  }
  return uid;
}

constexpr auto kRuntimes =
    std::to_array<std::string_view>({"cri-containerd", "crio", "docker", "libpod"});

constexpr std::size_t kIdLength = 64;

// "crio-conmon-<id>.scope" is the container's monitor and not the container: it keeps its name. So
// does a plain directory that only looks like "crio-<id>": under cgroupfs ids are whole.
void parse_container(std::string_view component, PodCgroupPath& place) {
  place.container = component;
  std::string_view stem = component;
  const bool scope = strip_suffix(stem, kScope);
  for (const std::string_view runtime : kRuntimes) {
    std::string_view id = stem;
    if (!strip_prefix(id, runtime) || !strip_prefix(id, "-")) continue;
    if (id.empty() || !std::all_of(id.begin(), id.end(), is_hex)) continue;
    if (!scope && id.size() != kIdLength) continue;
    place.runtime = component.substr(0, runtime.size());  // a view into the path
    place.container = id;
  }
}

}  // namespace

PodCgroupParser::PodCgroupParser(std::string_view pods_root) {
  while (pods_root.starts_with("/"))
    pods_root.remove_prefix(1);
  while (pods_root.ends_with("/"))
    pods_root.remove_suffix(1);
  add_root(pods_root);
  if (pods_root == "kubepods.slice") add_root("kubepods");
  if (pods_root == "kubepods") add_root("kubepods.slice");
}

void PodCgroupParser::add_root(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view stem = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const bool systemd = strip_suffix(stem, kSlice);
  roots_.push_back({std::string(path) + "/", std::string(stem), systemd});
}

std::optional<PodCgroupPath> PodCgroupParser::place(std::string_view path) const {
  while (path.starts_with("/"))
    path.remove_prefix(1);
  for (const Root& root : roots_) {
    std::string_view rest = path;
    if (!strip_prefix(rest, root.path)) continue;

    std::string_view component = pop(rest);
    const QosTier* tier = tier_named(component, root.stem, root.systemd);
    if (tier) component = pop(rest);
    const auto spelled = encoded_uid(component, root.stem, root.systemd, tier);
    if (!spelled) return std::nullopt;
    auto uid = decode_uid(*spelled, root.systemd);
    if (!uid) return std::nullopt;

    PodCgroupPath place;
    place.uid = std::move(*uid);
    if (tier) place.qos = tier->qos;
    if (rest.empty()) return place;
    parse_container(pop(rest), place);
    place.level =
        rest.empty() ? PodCgroupPath::Level::kContainer : PodCgroupPath::Level::kBelowContainer;
    return place;
  }
  return std::nullopt;
}

bool is_conmon(std::string_view name) {
  return name.starts_with("crio-conmon-") || name.starts_with("libpod-conmon-");
}

bool is_uuid(std::string_view uid) {
  if (uid.size() != 36) return false;
  for (std::size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !is_hex(uid[i])) return false;
  }
  return true;
}

bool is_static_uid(std::string_view uid) {
  return uid.size() == 32 && std::all_of(uid.begin(), uid.end(), is_hex);
}

}  // namespace headroom::observe
