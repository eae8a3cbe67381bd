// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/pod_containers.h"

#include "observe/pod/pod_cgroup_path.h"
#include "report/view/pod_index.h"

#include <optional>
#include <vector>

namespace headroom::daemon {
namespace {

std::string_view without_suffix(std::string_view name) {
  for (const std::string_view suffix : {".service", ".scope"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

bool is_named_by(std::string_view stem, const std::string& container) {
  if (stem == container) return true;
  if (stem.size() <= container.size() || !stem.ends_with(container)) return false;
  const char before = stem[stem.size() - container.size() - 1];
  return before == '-' || before == '.';
}

// The longest match: "web-main" matches web-main before main.
std::optional<std::string> name_of(const Pod& pod, std::string_view stem) {
  std::optional<std::string> best;
  for (const auto* const list : {&pod.init_containers, &pod.containers})
    for (const Container& container : *list)
      if (is_named_by(stem, container.name) && (!best || best->size() < container.name.size()))
        best = container.name;
  return best;
}

// Whether the name could be a runtime's id, as containerd's cgroups have under cgroupfs.
bool could_be_id(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_single(const Pod& pod) {
  return pod.containers.size() == 1 && pod.init_containers.empty();
}

}  // namespace

std::multimap<std::string, std::string> containers_of(const Pod& pod,
                                                      const observe::PodCgroup& cgroup,
                                                      const IdentifyContainer& identify) {
  std::multimap<std::string, std::string> found;
  std::vector<const observe::ContainerCgroup*> unidentified;
  for (const observe::ContainerCgroup& each : cgroup.containers) {
    if (observe::is_conmon(each.name)) continue;
    const bool by_id = !each.runtime.empty() || could_be_id(each.name);
    const ContainerIdentity* identity = by_id ? identify(each.name) : nullptr;
    if (identity && identity->sandbox) continue;
    if (identity && !identity->container.empty())
      found.emplace(identity->container, each.path);
    else if (const auto name = name_of(pod, without_suffix(each.name)))
      found.emplace(*name, each.path);
    else
      unidentified.push_back(&each);
  }
  // If one container is known, the other cgroups are the sandbox, or the container before it
  // restarted.
  if (found.empty() && is_single(pod))
    for (const observe::ContainerCgroup* each : unidentified)
      found.emplace(pod.containers.front().name, each->path);
  return found;
}

const Container* container_at(const Pod& pod, std::string_view path,
                              report::ContainerNames& names) {
  const std::string_view id = report::runtime_id(path);
  const ContainerIdentity* identity = id.empty() ? nullptr : names.find(id);
  if (identity && identity->sandbox) return nullptr;
  std::optional<std::string> name;
  if (identity && !identity->container.empty())
    name = identity->container;
  else
    name = name_of(pod, report::unit_stem(path));
  if (!name && is_single(pod)) name = pod.containers.front().name;
  const Container* found = nullptr;
  for_each_container(pod, [&](const Container& container) {
    if (name && container.name == *name) found = &container;
  });
  return found;
}

}  // namespace headroom::daemon
